// adk.mjs: what the session service of Google's ADK takes for the conversations that service.c
// measures.
//
//     node adk.mjs postgres URL SCHEMA
//
// BENCH_NODE_PATH is a folder in which `npm install @google/adk @mikro-orm/postgresql` was run.
// Says "ready WHAT IT IS" or "absent WHY", then answers each line of its input with the
// microseconds that the service took:
//
//     make N    a session of N events, each one message (no time: 0)
//     put N     an event at its end
//     load N    the session with all events
//     end       the schema is dropped, and it ends

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';

const [kind, where, schema] = process.argv.slice(2);
const say = (line) => process.stdout.write(line + '\n');
const MESSAGE = 600; // as in measure.h

let adk, service, version, ends;
try {
    if (!process.env.BENCH_NODE_PATH) throw new Error('BENCH_NODE_PATH is not set');
    if (kind !== 'postgres') throw new Error('only PostgreSQL is measured');
    const folder = resolve(process.env.BENCH_NODE_PATH);
    const require = createRequire(`${folder}/package.json`);
    adk = require('@google/adk');
    const { PostgreSqlDriver } = require('@mikro-orm/postgresql');
    const { parse } = require('pg-connection-string'); // knows a socket's folder
    version = require(`${folder}/node_modules/@google/adk/package.json`).version;
    const { host, port, user, password, database } = parse(where);
    service = new adk.DatabaseSessionService({
        driver: PostgreSqlDriver,
        host,
        port: Number(port) || 5432,
        user,
        password,
        dbName: database,
        schema,
    });
    await service.init();
    ends = async () => {
        await service.orm.em.getConnection().execute(`DROP SCHEMA "${schema}" CASCADE`);
        await service.orm.close();
    };
} catch (error) {
    say(`absent ${String(error.message).split('\n')[0]}`);
    process.exit(0);
}
say(`ready ${version}, node ${process.version}`);

function event(i) {
    let text = `${i} `;
    while (text.length < MESSAGE - 40) text += `word${(i * 31 + text.length) % 977} `;
    const role = i % 2 ? 'model' : 'user';
    return adk.createEvent({
        author: role,
        invocationId: `turn-${i >> 1}`,
        content: { role, parts: [{ text: text.padEnd(MESSAGE - 31, 'x') }] },
    });
}

const sessions = new Map();
const names = (n) => ({ appName: 'bench', userId: 'user', sessionId: `of-${n}` });

async function append(session) {
    const next = event(session.events.length);
    const start = process.hrtime.bigint();
    await service.appendEvent({ session, event: next });
    return Number(process.hrtime.bigint() - start) / 1000;
}

const work = {
    make: async (n) => {
        const session = await service.createSession(names(n));
        for (let i = 0; i < n; i++) await append(session);
        sessions.set(n, session);
        return 0;
    },
    put: (n) => append(sessions.get(n)),
    load: async (n) => {
        const start = process.hrtime.bigint();
        const { events } = await service.getSession(names(n));
        const us = Number(process.hrtime.bigint() - start) / 1000;
        if (events.length < n) throw new Error('it lost events');
        return us;
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [verb, n] = line.split(' ');
    if (verb === 'end') break;
    say(String(await work[verb](Number(n))));
}
await ends();
