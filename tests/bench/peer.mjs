// peer.mjs: what the peers of a bench share: packages, messages, times, and the loop that is told
// what to do.
//
// A peer says "ready WHAT IT IS" or "absent WHY", then answers each line of its input, "VERB N",
// with the microseconds that the work took. "end" ends it.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';

const MESSAGE = 600; // as in measure.h

const say = (line) => process.stdout.write(line + '\n');

// The text of message number i.
export function text(i) {
    let text = `${i} `;
    while (text.length < MESSAGE - 40) text += `word${(i * 31 + text.length) % 977} `;
    return text.padEnd(MESSAGE - 31, 'x');
}

// Microseconds that a promise of `work` takes, and what it gives.
export async function timed(work) {
    const start = process.hrtime.bigint();
    const value = await work();
    return [Number(process.hrtime.bigint() - start) / 1000, value];
}

// Loads packages of the folder BENCH_NODE_PATH. begin(load, version) returns {is, work, ends}: what
// the peer is, its verbs, and what is to be done at the end; whatever it throws makes the peer absent.
export async function serve(begin) {
    let peer;
    try {
        if (!process.env.BENCH_NODE_PATH) throw new Error('BENCH_NODE_PATH is not set');
        const folder = resolve(process.env.BENCH_NODE_PATH);
        const load = createRequire(`${folder}/package.json`);
        peer = await begin(load,
            (name) => load(`${folder}/node_modules/${name}/package.json`).version);
    } catch (error) {
        say(`absent ${String(error.message).split('\n')[0]}`);
        process.exit(0);
    }
    say(`ready ${peer.is}, node ${process.version}`);
    for await (const line of createInterface({ input: process.stdin })) {
        const [verb, n] = line.split(' ');
        if (verb === 'end') break;
        say(String(await peer.work[verb](Number(n))));
    }
    await peer.ends();
}
