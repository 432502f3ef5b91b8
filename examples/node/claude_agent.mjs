// claude_agent.mjs: a SessionStore for the Claude Agent SDK.
//
//   import { query } from "@anthropic-ai/claude-agent-sdk";
//   import { Sessile } from "./sessile.mjs";             // sessile rpc --client node > sessile.mjs
//   import { SessileSessionStore } from "./claude_agent.mjs";
//   const sessionStore = new SessileSessionStore(new Sessile());
//   for await (const message of query({ prompt, options: { sessionStore } })) …
//
// A transcript is a session of the agent "claude", and that of a subagent one of its own. What was
// said is kept as messages, so that search, `context` and `why` work; other lines as facts. A line
// that has a uuid is written once, however often the SDK sends it.

const BETWEEN = "\u241f"; // between the parts of a name
const PAGE = 1000; // entries that one request reads
const CACHED = 64; // transcripts whose uuids are kept in memory

const escaped = (part) => part.replace(/[%\u241f]/g, encodeURIComponent);
const nameOf = (...parts) => parts.filter((part) => part !== undefined).map(escaped).join(BETWEEN);

/** A line of a transcript, as an entry of a session. */
export function toEntry(line) {
  const { message, ...claude } = line;
  const { role, content, ...more } = message ?? {};
  const isSaid = (line.type === "user" || line.type === "assistant") && role === line.type
    && (typeof content === "string" || Array.isArray(content));
  if (!isSaid) return { custom: { kind: "claude.line", line }, source: "agent" };
  return { message: { role, content, claude: { ...claude, message: more } } };
}

/** The line of an entry; undefined: another program wrote it. */
export function toLine({ type, data }) {
  if (type === "custom") return data.kind === "claude.line" ? data.line : undefined;
  if (!data.claude) return undefined;
  const { message, ...rest } = data.claude;
  return { ...rest, message: { role: data.role, content: data.content, ...message } };
}

export class SessileSessionStore {
  /**
   * @param {object} store a client of sessile rpc; whoever made it closes it
   * @param {{ agent?: string }} [options]
   */
  constructor(store, { agent = "claude" } = {}) {
    Object.assign(this, { store, agent, transcripts: new Map() });
  }

  #named(id) {
    return { id, agent: this.agent };
  }

  // What is known of a transcript. Calls for one transcript run one after the other.
  async #alone(id, work) {
    const known = this.transcripts.get(id)
      ?? { id, uuids: new Set(), seen: undefined, uses: 0, queue: Promise.resolve() };
    this.transcripts.delete(id);
    this.transcripts.set(id, known);
    for (const [old, { uses }] of this.transcripts) {
      if (this.transcripts.size <= CACHED) break;
      if (uses === 0 && old !== id) this.transcripts.delete(old);
    }
    known.uses += 1;
    const done = known.queue.then(() => work(known));
    known.queue = done.catch(() => {});
    return done.finally(() => { known.uses -= 1; });
  }

  // The entries after one of them, in their order; null: there is no such session.
  async #entries(id, after) {
    const entries = [];
    try {
      for (let page = { next: after }, isFirst = true; isFirst || page.next; isFirst = false) {
        page = await this.store.call("session/entries", { session: this.#named(id),
          types: ["message", "custom"], limit: PAGE, ...page.next && { after: page.next } });
        for (const entry of page.entries) entries.push(entry);
      }
    } catch (why) {
      if (why.status === "NOTFOUND") return null;
      throw why;
    }
    return entries;
  }

  // Takes note of the lines that came since, of this process or another one.
  #note(known, entries) {
    for (const entry of entries) {
      const uuid = toLine(entry)?.uuid;
      if (uuid !== undefined) known.uuids.add(uuid);
      known.seen = entry.id;
    }
  }

  async append(key, lines) {
    const id = nameOf(key.projectKey, key.sessionId, key.subpath);
    await this.#alone(id, async (known) => {
      const came = await this.#entries(id, known.seen);
      if (came === null) {
        Object.assign(known, { uuids: new Set(), seen: undefined });
        await this.store.call("session/open", { session: this.#named(id), create: true });
      }
      this.#note(known, came ?? []);
      const fresh = new Map(); // by uuid; the others by themselves
      for (const line of lines) {
        if (line.uuid === undefined) fresh.set(line, line);
        else if (!known.uuids.has(line.uuid) && !fresh.has(line.uuid)) fresh.set(line.uuid, line);
      }
      if (fresh.size === 0) return;
      await this.store.call("session/write",
        { session: this.#named(id), entries: [...fresh.values()].map(toEntry) });
    });
  }

  async load(key) {
    const entries = await this.#entries(nameOf(key.projectKey, key.sessionId, key.subpath));
    return entries && entries.map(toLine).filter((line) => line !== undefined);
  }

  // The sessions below a name, with what follows it.
  async #below(...parts) {
    const prefix = nameOf(...parts) + BETWEEN;
    const list = await this.store.call("store/list", { agent: this.agent, prefix });
    return list.filter(({ id }) => typeof id === "string").map(({ id, modified }) => (
      { id, modified, rest: id.slice(prefix.length).split(BETWEEN).map(decodeURIComponent) }));
  }

  async listSessions(projectKey) {
    return (await this.#below(projectKey)).filter(({ rest }) => rest.length === 1)
      .map(({ rest, modified }) => ({ sessionId: rest[0], mtime: modified }));
  }

  async listSubkeys({ projectKey, sessionId }) {
    return (await this.#below(projectKey, sessionId)).map(({ rest }) => rest[0]);
  }

  async delete({ projectKey, sessionId, subpath }) {
    const ids = [nameOf(projectKey, sessionId, subpath)];
    if (subpath === undefined) {
      ids.push(...(await this.#below(projectKey, sessionId)).map(({ id }) => id));
    }
    for (const id of ids) {
      await this.#alone(id, async (known) => {
        Object.assign(known, { uuids: new Set(), seen: undefined });
        await this.store.call("store/delete", { session: this.#named(id) }).catch((why) => {
          if (why.status !== "NOTFOUND") throw why;
        });
      });
    }
  }
}
