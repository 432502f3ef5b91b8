// langgraph.mjs: a checkpointer for LangGraph.js whose threads are sessions.
//
//   import { Sessile } from "./sessile.mjs";             // sessile rpc --client node > sessile.mjs
//   import { SessileSaver } from "./langgraph.mjs";
//   const checkpointer = new SessileSaver(new Sessile());
//   const app = graph.compile({ checkpointer });
//
// A thread is a session of the agent "langgraph". Checkpoints and pending writes are facts in its
// log. The value of a channel is kept once for each version; of a list that grew, what was added
// is kept, and a whole list each 64 times. New messages are appended as messages as well, so that
// `sessile tree`, search, policies and `why` work on them.
import { isDeepStrictEqual } from "node:util";
import {
  BaseCheckpointSaver, TASKS, WRITES_IDX_MAP, compareWritesSortKeys, copyCheckpoint,
  getCheckpointId, maxChannelVersion, writesSortKey,
} from "@langchain/langgraph-checkpoint";
import { toMessage } from "./langgraph_messages.mjs";

const WHOLE_EACH = 64; // versions of a list that grows
const PAGE = 1000; // facts that one request reads
const THREADS = 64; // whose facts are kept in memory

const [OPEN, COMMA] = Buffer.from("[,");

const keyOf = (...parts) => JSON.stringify(parts);

// The elements of a list that may be kept in pieces.
function elementsOf(slot) {
  const pieces = [];
  for (; slot.added; slot = slot.base) pieces.push(slot.added);
  return [slot.json, ...pieces.reverse()].flat();
}

// The JSON text of a value; undefined if it is not kept as JSON.
function textOf(slot) {
  if (slot?.added) return JSON.stringify(elementsOf(slot));
  return slot && "json" in slot ? JSON.stringify(slot.json) : undefined;
}

// What a JSON text has behind the elements of `before`, both lists; undefined: more differs, or
// the numbers are none that JavaScript writes.
function addedBehind(before, bytes) {
  if (before?.at(0) !== OPEN || bytes?.at(0) !== OPEN) return undefined;
  const end = before.length - 1; // of its elements
  if (!bytes.subarray(0, end).equals(before.subarray(0, end))) return undefined;
  if (bytes.length === before.length) return [];
  if (end > 1 && bytes.at(end) !== COMMA) return undefined;
  const text = "[" + bytes.toString("utf8", end > 1 ? end + 1 : 1);
  const added = JSON.parse(text);
  return JSON.stringify(added) === text ? added : undefined;
}

function bytesOf(slot) {
  const text = textOf(slot);
  return text === undefined ? undefined : Buffer.from(text);
}

/** What the log of a thread says. Its facts are taken in their order. */
class Thread {
  constructor(id) {
    Object.assign(this, { id, seen: undefined, isOpen: false, uses: 0, queue: Promise.resolve() });
    Object.assign(this, { spaces: new Map(), slots: new Map(), facts: new Set() });
    this.newest = undefined; // the newest checkpoint of the root namespace
    this.head = "00000000"; // the message behind which the next fact is written
  }

  space(name) {
    if (!this.spaces.has(name)) {
      this.spaces.set(name, { checkpoints: new Map(), writes: new Map(), versions: new Map() });
    }
    return this.spaces.get(name);
  }

  /** Takes a fact; `head` is the message behind which it was written. */
  take(entry, head, fact) {
    if (this.facts.has(entry)) return; // it is our own
    this.facts.add(entry);
    this.head = head;
    if (fact.kind === "langgraph.checkpoint") this.#checkpoint(entry, head, fact);
    if (fact.kind === "langgraph.writes") this.#writes(fact);
  }

  #checkpoint(entry, head, fact) {
    const space = this.space(fact.namespace);
    const values = new Map(space.checkpoints.get(fact.parent)?.values);
    for (const one of fact.values) {
      const base = one.added && this.slots.get(keyOf(one.of, one.channel));
      const slot = { ...one, base, entry, depth: base ? base.depth + 1 : 0 };
      values.set(one.channel, slot);
      space.versions.set(keyOf(one.channel, one.version), slot);
      this.slots.set(keyOf(entry, one.channel), slot);
    }
    space.checkpoints.set(fact.id, { ...fact, head, values });
    if (fact.namespace === "") this.newest = fact.id;
  }

  #writes(fact) {
    const { writes } = this.space(fact.namespace);
    if (!writes.has(fact.checkpoint)) writes.set(fact.checkpoint, new Map());
    const all = writes.get(fact.checkpoint);
    for (const one of fact.writes) {
      const key = keyOf(fact.task, one.index);
      if (one.index >= 0 && all.has(key)) continue; // the first one counts
      const order = writesSortKey(fact.path, fact.task, one.index);
      all.set(key, { ...one, task: fact.task, order });
    }
  }

  /** The pending writes of a checkpoint, in the order in which a run applies them. */
  writesTo(namespace, checkpoint) {
    return [...this.space(namespace).writes.get(checkpoint)?.values() ?? []]
      .sort((a, b) => compareWritesSortKeys(a.order, b.order));
  }
}

export class SessileSaver extends BaseCheckpointSaver {
  /**
   * @param {object} store a client of sessile rpc; whoever made it closes it
   * @param {{ agent?: string, mirror?: string | false, serde?: object }} [options] mirror: the
   *   channel whose new messages become messages of the session; false: none
   */
  constructor(store, { agent = "langgraph", mirror = "messages", serde } = {}) {
    super(serde);
    Object.assign(this, { store, agent, mirror, threads: new Map() });
  }

  #call(method, thread, params) {
    return this.store.call(method, { session: { id: thread.id, agent: this.agent }, ...params });
  }

  // One after the other for each thread. The threads used last are kept.
  async #alone(id, work) {
    const thread = this.threads.get(id) ?? new Thread(id);
    this.threads.delete(id);
    this.threads.set(id, thread);
    for (const [old, { uses }] of this.threads) {
      if (this.threads.size <= THREADS) break;
      if (uses === 0 && old !== id) this.threads.delete(old);
    }
    thread.uses += 1;
    const done = thread.queue.then(() => work(thread));
    thread.queue = done.catch(() => {});
    return done.finally(() => { thread.uses -= 1; });
  }

  // Reads the facts that came since.
  async #refresh(thread) {
    try {
      for (let page = { next: "" }; page.next !== undefined;) {
        page = await this.#call("session/entries", thread,
          { types: ["custom"], limit: PAGE, ...thread.seen && { after: thread.seen } });
        thread.isOpen = true;
        for (const { id, parent_id, data } of page.entries) {
          thread.take(id, parent_id, data);
          thread.seen = id;
        }
      }
    } catch (why) {
      if (why.status !== "NOTFOUND") throw why;
      Object.assign(thread, new Thread(thread.id), { uses: thread.uses, queue: thread.queue });
    }
  }

  // Writes a fact, behind messages; all of them in one commit.
  async #write(thread, fact, messages = []) {
    if (!thread.isOpen) await this.#call("session/open", thread, { create: true });
    thread.isOpen = true;
    const entries = [...messages.map((message) => ({ message })), { custom: fact, source: "host" }];
    let ids;
    try {
      ids = await this.#call("session/write", thread, { entries });
    } catch (why) {
      if (why.status !== "INVALID" || messages.length === 0) throw why;
      return this.#write(thread, fact); // a message of a form that sessions do not have
    }
    thread.take(ids.at(-1), messages.length > 0 ? ids.at(-2) : thread.head, fact);
    const next = thread.seen === undefined ? 1 : parseInt(thread.seen, 16) + 1;
    if (parseInt(ids[0], 16) === next) thread.seen = ids.at(-1); // nobody wrote in between
  }

  // A value in the bytes of the serializer, and whether they are JSON.
  async #dumped(value) {
    const [type, data] = await this.serde.dumpsTyped(value);
    const bytes = typeof data === "string" ? Buffer.from(data)
      : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    return { type, bytes, isJson: type === "json" };
  }

  // A value as a fact has it: JSON as JSON, other bytes as base64.
  #kept({ type, bytes, isJson }) {
    const text = isJson ? bytes.toString() : undefined;
    const json = isJson ? JSON.parse(text) : undefined;
    if (isJson && JSON.stringify(json) === text) return { json };
    return { type, b64: bytes.toString("base64") };
  }

  async #loaded(kept) {
    const text = textOf(kept);
    if (text !== undefined) return this.serde.loadsTyped("json", text);
    return this.serde.loadsTyped(kept.type, Uint8Array.from(Buffer.from(kept.b64, "base64")));
  }

  // The value of a channel, after `before`; and what was added to it, if it is a list that grew.
  async #channel(value, before) {
    const dumped = await this.#dumped(value);
    const old = before && dumped.isJson ? before.bytes ?? bytesOf(before) : undefined;
    const added = addedBehind(old, dumped.bytes);
    if (before) before.bytes = undefined; // the newest one has them
    const isWhole = !added || before.depth + 1 >= WHOLE_EACH;
    const kept = isWhole ? this.#kept(dumped) : { of: before.entry, added };
    return { kept, added, bytes: dumped.isJson ? dumped.bytes : undefined };
  }

  // The messages of the mirrored channel that its parent did not have.
  #messages(kept, added, before) {
    const known = new Set(added || !before ? [] : elementsOf(before).map((one) => keyOf(one)));
    const list = added ?? (Array.isArray(kept.json) ? kept.json : []);
    return list.filter((one) => !known.has(keyOf(one))).map(toMessage).filter(Boolean);
  }

  // A checkpoint whose parent is not the newest one begins another branch of the conversation.
  async #branch(thread, parent) {
    const head = parent !== undefined && parent !== thread.newest
      && thread.space("").checkpoints.get(parent)?.head;
    if (!head) return;
    if (head === "00000000") await this.#call("session/clear", thread, {});
    else await this.#call("session/branch", thread, { entry: head });
    thread.head = head;
  }

  async put(config, checkpoint, metadata, newVersions) {
    const { thread_id, checkpoint_ns: namespace = "", checkpoint_id: parent } =
      config.configurable ?? {};
    if (thread_id === undefined) throw new Error('put: config.configurable has no "thread_id"');
    const { channel_values, ...body } = copyCheckpoint(checkpoint);
    const versions = newVersions ?? Object.fromEntries(
      Object.keys(channel_values).map((channel) => [channel, body.channel_versions[channel]]));
    await this.#alone(thread_id, async (thread) => {
      const space = () => thread.space(namespace).checkpoints;
      const isKnown = thread.isOpen && (parent === undefined || space().has(parent));
      if (!isKnown) await this.#refresh(thread);
      const before = space().get(parent)?.values;
      const values = [], messages = [], all = new Map();
      for (const [channel, version] of Object.entries(versions)) {
        if (!Object.hasOwn(channel_values, channel)) {
          values.push({ channel, version }); // it has none at this version
          continue;
        }
        const { kept, added, bytes } =
          await this.#channel(channel_values[channel], before?.get(channel));
        values.push({ channel, version, ...kept });
        all.set(channel, bytes);
        if (namespace === "" && channel === this.mirror) {
          messages.push(...this.#messages(kept, added, before?.get(channel)));
        }
      }
      if (namespace === "" && this.mirror) await this.#branch(thread, parent);
      await this.#write(thread, {
        kind: "langgraph.checkpoint", namespace, id: checkpoint.id, parent,
        checkpoint: this.#kept(await this.#dumped(body)),
        metadata: this.#kept(await this.#dumped(metadata)), values,
      }, messages);
      const kept = space().get(checkpoint.id).values;
      for (const [channel, bytes] of all) kept.get(channel).bytes = bytes;
    });
    return { configurable: { thread_id, checkpoint_ns: namespace, checkpoint_id: checkpoint.id } };
  }

  async putWrites(config, writes, task, path = "") {
    const { thread_id, checkpoint_ns: namespace = "", checkpoint_id } = config.configurable ?? {};
    for (const [name, value] of Object.entries({ thread_id, checkpoint_id })) {
      if (value === undefined) throw new Error(`putWrites: config.configurable has no "${name}"`);
    }
    const kept = await Promise.all(writes.map(async ([channel, value], i) => (
      { index: WRITES_IDX_MAP[channel] || i, channel, ...this.#kept(await this.#dumped(value)) })));
    await this.#alone(thread_id, (thread) => this.#write(thread, { kind: "langgraph.writes",
      namespace, checkpoint: checkpoint_id, task, path, writes: kept }));
  }

  async #tuple(thread, namespace, one) {
    const config = (id) => (
      { configurable: { thread_id: thread.id, checkpoint_ns: namespace, checkpoint_id: id } });
    const checkpoint = await this.#loaded(one.checkpoint);
    checkpoint.channel_values = {};
    for (const [channel, version] of Object.entries(checkpoint.channel_versions)) {
      const own = one.values.get(channel);
      const slot = own?.version === version ? own
        : thread.space(namespace).versions.get(keyOf(channel, version));
      if (slot && ("json" in slot || slot.added || slot.b64 !== undefined)) {
        checkpoint.channel_values[channel] = await this.#loaded(slot);
      }
    }
    if (checkpoint.v < 4 && one.parent !== undefined) { // sends were pending writes of the parent
      const sends = thread.writesTo(namespace, one.parent)
        .filter(({ channel }) => channel === TASKS);
      checkpoint.channel_values[TASKS] = await Promise.all(sends.map((send) => this.#loaded(send)));
      const versions = Object.values(checkpoint.channel_versions);
      checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions)
        : this.getNextVersion(undefined);
    }
    const pendingWrites = await Promise.all(thread.writesTo(namespace, one.id)
      .map(async (write) => [write.task, write.channel, await this.#loaded(write)]));
    return {
      config: config(one.id), checkpoint, metadata: await this.#loaded(one.metadata), pendingWrites,
      ...one.parent !== undefined && { parentConfig: config(one.parent) },
    };
  }

  async getTuple(config) {
    const { thread_id, checkpoint_ns: namespace = "" } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    return this.#alone(thread_id, async (thread) => {
      await this.#refresh(thread);
      const { checkpoints } = thread.space(namespace);
      const id = getCheckpointId(config) || [...checkpoints.keys()].sort().at(-1);
      const one = checkpoints.get(id);
      return one && this.#tuple(thread, namespace, one);
    });
  }

  async *list(config, { before, limit = Infinity, filter = {} } = {}) {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const end = before?.configurable?.checkpoint_id;
    const ids = thread_id !== undefined ? [thread_id]
      : (await this.store.call("store/list", { agent: this.agent })).map(({ id }) => id);
    for (const id of ids) {
      const found = await this.#alone(id, async (thread) => {
        await this.#refresh(thread);
        const spaces = [...thread.spaces].filter(([name]) => (checkpoint_ns ?? name) === name);
        return spaces.flatMap(([name, { checkpoints }]) => [...checkpoints.values()]
          .filter((one) => (!checkpoint_id || one.id === checkpoint_id) && (!end || one.id < end))
          .sort((a, b) => (a.id < b.id ? 1 : -1))
          .map((one) => ({ thread, name, one })));
      });
      for (const { thread, name, one } of found) {
        if (limit <= 0) return;
        const metadata = await this.#loaded(one.metadata);
        const isWanted = Object.entries(filter)
          .every(([key, value]) => isDeepStrictEqual(metadata[key], value));
        if (!isWanted) continue;
        limit -= 1;
        yield this.#tuple(thread, name, one);
      }
    }
  }

  async deleteThread(threadId) {
    await this.#alone(threadId, async (thread) => {
      try {
        await this.store.call("store/delete", { session: { id: thread.id, agent: this.agent } });
      } catch (why) {
        if (why.status !== "NOTFOUND") throw why;
      }
      Object.assign(thread, new Thread(thread.id), { uses: thread.uses, queue: thread.queue });
    });
  }
}
