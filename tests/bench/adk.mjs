// adk.mjs: what the session service of Google's ADK takes for the conversations that service.c
// measures.
//
//     node adk.mjs postgres URL SCHEMA
//
// In the folder BENCH_NODE_PATH `npm install @google/adk @mikro-orm/postgresql` was run. It is told
// what to do as peer.mjs says:
//
//     make N    a session of N events, each one message (no time: 0)
//     put N     an event at its end
//     load N    the session with all events
//     end       the schema is dropped, and it ends

import { serve, text, timed } from './peer.mjs';

const [kind, where, schema] = process.argv.slice(2);

async function open(load, version) {
    if (kind !== 'postgres') throw new Error('only PostgreSQL is measured');
    const adk = load('@google/adk');
    const { PostgreSqlDriver } = load('@mikro-orm/postgresql');
    const { parse } = load('pg-connection-string'); // knows a socket's folder
    const { host, port, user, password, database } = parse(where);
    const service = new adk.DatabaseSessionService({
        driver: PostgreSqlDriver,
        host,
        port: Number(port) || 5432,
        user,
        password,
        dbName: database,
        schema,
    });
    await service.init();
    const sessions = new Map();
    const names = (n) => ({ appName: 'bench', userId: 'user', sessionId: `of-${n}` });

    async function append(session) {
        const i = session.events.length;
        const role = i % 2 ? 'model' : 'user';
        const event = adk.createEvent({
            author: role,
            invocationId: `turn-${i >> 1}`,
            content: { role, parts: [{ text: text(i) }] },
        });
        const [us] = await timed(() => service.appendEvent({ session, event }));
        return us;
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
            const [us, { events }] = await timed(() => service.getSession(names(n)));
            if (events.length < n) throw new Error('it lost events');
            return us;
        },
    };
    const ends = async () => {
        await service.orm.em.getConnection().execute(`DROP SCHEMA "${schema}" CASCADE`);
        await service.orm.close();
    };
    return { is: version('@google/adk'), work, ends };
}

await serve(open);
