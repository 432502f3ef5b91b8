// langgraph.mjs: what LangGraph's savers take for the conversations that stores.c measures.
//
//     node langgraph.mjs sqlite PATH
//     node langgraph.mjs postgres URL SCHEMA
//
// BENCH_NODE_PATH is a folder in which `npm install @langchain/core
// @langchain/langgraph-checkpoint-sqlite @langchain/langgraph-checkpoint-postgres` was run.
// Says "ready WHAT IT IS" or "absent WHY", then answers each line of its input with the
// microseconds that the saver took:
//
//     make N    a thread of N messages (no time: 0)
//     put N     a turn of two messages at its end, saved as a graph saves it: one put
//     load N    its newest state, every message readable
//     end       the schema is dropped, and it ends

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';

const [kind, where, schema] = process.argv.slice(2);
const say = (line) => process.stdout.write(line + '\n');
const MESSAGE = 600; // as in measure.h

let core, lib, saver, version, ends = () => {};
try {
    if (!process.env.BENCH_NODE_PATH) throw new Error('BENCH_NODE_PATH is not set');
    const folder = resolve(process.env.BENCH_NODE_PATH);
    const require = createRequire(`${folder}/package.json`);
    core = require('@langchain/core/messages');
    lib = require('@langchain/langgraph-checkpoint');
    const name = `@langchain/langgraph-checkpoint-${kind}`;
    const { SqliteSaver, PostgresSaver } = require(name);
    version = require(`${folder}/node_modules/${name}/package.json`).version;
    if (kind === 'sqlite') {
        saver = SqliteSaver.fromConnString(where);
        saver.setup();
        const levels = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];
        version += `, synchronous=${levels[saver.db.pragma('synchronous', { simple: true })]}`;
        ends = () => saver.db.close();
    } else {
        saver = PostgresSaver.fromConnString(where, { schema });
        await saver.setup();
        ends = async () => {
            await saver.pool.query(`DROP SCHEMA "${schema}" CASCADE`);
            await saver.end();
        };
    }
} catch (error) {
    say(`absent ${String(error.message).split('\n')[0]}`);
    process.exit(0);
}
say(`ready ${version}, node ${process.version}`);

function message(i) {
    let text = `${i} `;
    while (text.length < MESSAGE - 40) text += `word${(i * 31 + text.length) % 977} `;
    const content = text.padEnd(MESSAGE - 31, 'x');
    return i % 2 ? new core.AIMessage({ content }) : new core.HumanMessage({ content });
}

const threads = new Map();

async function put(thread) {
    const checkpoint = {
        v: 4,
        id: lib.uuid6(thread.step),
        ts: new Date().toISOString(),
        channel_values: { messages: thread.messages },
        channel_versions: { messages: ++thread.version },
        versions_seen: {},
    };
    const metadata = { source: 'loop', step: thread.step++, parents: {} };
    const start = process.hrtime.bigint();
    thread.config = await saver.put(thread.config, checkpoint, metadata,
        { messages: thread.version });
    return Number(process.hrtime.bigint() - start) / 1000;
}

const work = {
    make: async (n) => {
        const messages = [];
        for (let i = 0; i < n; i++) messages.push(message(i));
        const config = { configurable: { thread_id: `of-${n}`, checkpoint_ns: '' } };
        threads.set(n, { messages, config, step: 0, version: 0 });
        await put(threads.get(n));
        return 0;
    },
    put: async (n) => {
        const thread = threads.get(n);
        // The list stays near its size: the turn before goes when the next one comes.
        thread.messages = [...thread.messages.slice(0, n), message(2 * thread.step),
            message(2 * thread.step + 1)];
        return put(thread);
    },
    load: async (n) => {
        const config = { configurable: { thread_id: `of-${n}`, checkpoint_ns: '' } };
        const start = process.hrtime.bigint();
        const { checkpoint } = await saver.getTuple(config);
        const us = Number(process.hrtime.bigint() - start) / 1000;
        if (checkpoint.channel_values.messages.length < n) throw new Error('it lost messages');
        return us;
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [verb, n] = line.split(' ');
    if (verb === 'end') break;
    say(String(await work[verb](Number(n))));
}
await ends();
