// openai_agents.mjs: a Session for the OpenAI Agents SDK.
//
//   import { Agent, run } from "@openai/agents";
//   import { Sessile } from "./sessile.mjs";             // sessile rpc --client node > sessile.mjs
//   import { SessileSession } from "./openai_agents.mjs";
//   const session = new SessileSession(new Sessile(), { id: "bug-42", policy: "sliding_window" });
//   await run(new Agent({ name: "helper" }), "why is it slow?", { session });
//
// An item is a message. getItems() is the context: if the session has a policy, the SDK sends what
// the policy left, and knows nothing of it. popItem() and clearSession() move the head: nothing is
// lost.

// Bytes in an item, such as an image that a tool returned, are kept as base64.
const toJson = (value) => JSON.parse(JSON.stringify(value, (_, one) => (
  one instanceof Uint8Array ? { $bytes: Buffer.from(one).toString("base64") } : one)));

function fromJson(value) {
  if (Array.isArray(value)) return value.map(fromJson);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$bytes === "string") return Uint8Array.from(Buffer.from(value.$bytes, "base64"));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fromJson(one)]));
}

const isContent = (value) => typeof value === "string" || Array.isArray(value);

/** An item of the SDK as a message. What a message has no field for is under "openai". */
export function toMessage(item) {
  const { role, content, ...rest } = toJson(item);
  if (role && isContent(content)) return { role, content, openai: rest };
  if (rest.type === "function_call") {
    const { callId: id, name, arguments: args, ...openai } = rest;
    return { role: "assistant", content: "", tool_calls: [{ id, name, arguments: args }], openai };
  }
  if (rest.type === "function_call_result") {
    const { callId, name, output, ...openai } = rest;
    if (!isContent(output)) openai.is_one = true; // one block, not a list
    return { role: "tool", tool_call_id: callId, name,
      content: isContent(output) ? output : [output], openai };
  }
  if (rest.type === "reasoning" && isContent(content)) {
    return { role: "assistant", content, openai: rest };
  }
  return { role: "assistant", content: "", openai: { item: toJson(item) } };
}

/** The item of a message. One that a policy or another program wrote becomes an item as well. */
export function toItem(message) {
  const { role, content, openai } = message;
  if (openai?.item) return fromJson(openai.item);
  if (openai?.type === "function_call") {
    const { id: callId, name, arguments: args } = message.tool_calls[0];
    return fromJson({ callId, name, arguments: args, ...openai });
  }
  if (openai?.type === "function_call_result") {
    const { is_one, ...rest } = openai;
    const output = is_one && Array.isArray(content) ? content[0] : content;
    return fromJson({ callId: message.tool_call_id, name: message.name, output, ...rest });
  }
  if (openai?.type === "reasoning") return fromJson({ content, ...openai });
  if (openai) return fromJson({ role, content, ...openai });
  if (role !== "assistant") return { type: "message", role, content };
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };
}

// The context has each result behind its call; here they are in the order in which they were added.
// The engine answers a call that never was; the SDK does so in its own way.
function inOrder(context) {
  const runs = [[]];
  for (const read of context) {
    if (read.id) runs.at(-1).push(read);
    else if (read.key) runs.push([read], []); // of a policy: it stays where it is
  }
  return runs.flatMap((run) => run.sort((a, b) => (a.id < b.id ? -1 : 1)));
}

const clamp = (limit, most) => Math.min(Math.max(0, limit), most);

export class SessileSession {
  /**
   * @param {object} store a client of sessile rpc; whoever made it closes it
   * @param {{ id?: string, agent?: string, user?: string } & object} [options] the session, made if
   *   it is not there, without an id a new one; others, as policy and window, are those of
   *   session/open
   */
  constructor(store, { id, agent = "openai-agents", user, ...settings } = {}) {
    Object.assign(this, { store, settings, names: { id, agent, user } });
  }

  // The session is opened by the first call.
  #open() {
    const { id, agent, user } = this.names;
    this.opened ??= (id === undefined
      ? this.store.call("session/create", { agent, user, ...this.settings })
      : this.store.call("session/open",
        { session: { id, agent, user }, create: true, ...this.settings })
    ).then((session) => ({ id: session.id, agent: session.agent, user: session.user }));
    this.opened.catch(() => { this.opened = undefined; }); // the next call tries again
    return this.opened;
  }

  async #call(method, params) {
    return this.store.call(method, { session: await this.#open(), ...params });
  }

  async getSessionId() {
    return (await this.#open()).id;
  }

  async getItems(limit) {
    const { messages } = await this.#call("session/context", {});
    const items = inOrder(messages).map(({ message }) => toItem(message));
    return limit === undefined ? items : items.slice(items.length - clamp(limit, items.length));
  }

  async addItems(items) {
    if (items.length > 0) await this.#call("session/turn", { messages: items.map(toMessage) });
  }

  async popItem() {
    const [popped] = await this.#call("session/pop", { n: 1 });
    return popped && toItem(popped.message);
  }

  async clearSession() {
    await this.#call("session/clear", {});
  }
}
