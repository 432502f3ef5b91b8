// langgraph.mjs: what LangGraph's savers take for the conversations that stores.c measures.
//
//     node langgraph.mjs sqlite PATH
//     node langgraph.mjs postgres URL SCHEMA
//
// In the folder BENCH_NODE_PATH `npm install @langchain/core
// @langchain/langgraph-checkpoint-sqlite @langchain/langgraph-checkpoint-postgres` was run. It is told
// what to do as peer.mjs says:
//
//     make N    a thread of N messages (no time: 0)
//     put N     a turn of two messages at its end, saved as a graph saves it: one put
//     load N    its newest state, every message readable
//     end       the schema is dropped, and it ends

import { serve, text, timed } from './peer.mjs';

const [kind, where, schema] = process.argv.slice(2);

function openSqlite({ SqliteSaver }) {
    const saver = SqliteSaver.fromConnString(where);
    saver.setup();
    const levels = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];
    return {
        saver,
        how: `, synchronous=${levels[saver.db.pragma('synchronous', { simple: true })]}`,
        ends: () => saver.db.close(),
    };
}

async function openPostgres({ PostgresSaver }) {
    const saver = PostgresSaver.fromConnString(where, { schema });
    await saver.setup();
    return {
        saver,
        how: '',
        ends: async () => {
            await saver.pool.query(`DROP SCHEMA "${schema}" CASCADE`);
            await saver.end();
        },
    };
}

async function open(load, version) {
    const core = load('@langchain/core/messages');
    const lib = load('@langchain/langgraph-checkpoint');
    const name = `@langchain/langgraph-checkpoint-${kind}`;
    const { saver, how, ends } = await (kind === 'sqlite' ? openSqlite : openPostgres)(load(name));
    const threads = new Map();

    function message(i) {
        const content = text(i);
        return i % 2 ? new core.AIMessage({ content }) : new core.HumanMessage({ content });
    }

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
        const [us, config] = await timed(() => saver.put(thread.config, checkpoint, metadata,
            { messages: thread.version }));
        thread.config = config;
        return us;
    }

    const config = (n) => ({ configurable: { thread_id: `of-${n}`, checkpoint_ns: '' } });
    const work = {
        make: async (n) => {
            const messages = Array.from({ length: n }, (_, i) => message(i));
            threads.set(n, { messages, config: config(n), step: 0, version: 0 });
            await put(threads.get(n));
            return 0;
        },
        put: (n) => {
            const thread = threads.get(n);
            // The list stays near its size: the turn before goes when the next one comes.
            thread.messages = [...thread.messages.slice(0, n), message(2 * thread.step),
                message(2 * thread.step + 1)];
            return put(thread);
        },
        load: async (n) => {
            const [us, { checkpoint }] = await timed(() => saver.getTuple(config(n)));
            if (checkpoint.channel_values.messages.length < n) throw new Error('it lost messages');
            return us;
        },
    };
    return { is: version(name) + how, work, ends };
}

await serve(open);
