--- client_node: a client for Node, one file without packages, typed by JSDoc.

local core = require "sessile.core"
local registry = require "sessile.rpc.registry"
local ts = require "sessile.rpc.emit_ts"

local client = {}

local TEXT = [==[
// A client of sessile rpc for Node 18 and newer, written by sessile @VERSION@:
//   sessile rpc --client node > sessile.mjs
//
//   import { Sessile } from "./sessile.mjs";
//   const store = new Sessile();
//   await store.call("session/open", { session: "bug-42", create: true });
//   await store.call("session/turn",
//     { session: "bug-42", messages: [{ role: "user", content: "hi" }] });
//   await store.close();
//
// JavaScript rounds whole numbers beyond 2^53: keep such numbers as text in your messages.
// @ts-check
import { spawn } from "node:child_process";

/**
 * @typedef {object} Answers what the server may ask; each may be async, and throw
 * @property {(asked: Asks["ask/model"]["params"]) => Promise<ModelAnswer> | ModelAnswer} [model]
 * @property {(asked: Asks["ask/hook"]["params"], message: (index: number, previous?: boolean) =>
 *   Promise<Read>) => Promise<HookAnswer> | HookAnswer} [hook]
 * @property {(asked: Asks["ask/state"]["params"]) => Promise<StateAnswer> | StateAnswer} [state]
 * @property {(asked: Asks["ask/embed"]["params"]) => Promise<EmbedAnswer> | EmbedAnswer} [embed]
 */

/**
 * @typedef {object} Options
 * @property {string} [command] the executable; "sessile"
 * @property {string[]} [args] before "rpc", such as ["--store", "./sessions"]
 * @property {Record<string, string | undefined>} [env]
 * @property {string} [cwd]
 * @property {string} [name] of this client
 * @property {Answers} [answers]
 * @property {Embeds} [embeds] with answers.embed: its name, and the numbers of a vector
 * @property {(note: Notes["note/entries"]["params"]) => void} [onEntries] after session/watch
 */

/** A failure that the server reports. */
export class SessileError extends Error {
  /** @param {{ code: number, message: string, data?: any }} failure @param {string} method */
  constructor(failure, method) {
    super(`${method}: ${failure.message}`);
    this.name = "SessileError";
    this.code = failure.code;
    /** @type {string} */
    this.status = failure.data?.status ?? "INVALID";
    /** @type {string | undefined} */
    this.next = failure.data?.next;
    this.data = failure.data;
  }
}

export class Sessile {
  /** @param {Options} [options] */
  constructor(options = {}) {
    this.options = options;
    this.number = 0;
    /** @type {Map<number, { method: string, resolve: (value: any) => void,
     *   reject: (why: Error) => void }>} */
    this.waiting = new Map();
    this.rest = "";
    /** @type {Error | undefined} */
    this.gone = undefined;
    this.child = spawn(options.command ?? "sessile", [...(options.args ?? []), "rpc"], {
      stdio: ["pipe", "pipe", "inherit"], cwd: options.cwd, env: options.env,
    });
    this.child.stdout.setEncoding("utf8");
    this.child.stdout.on("data", (piece) => this.#take(piece));
    this.child.stdin.on("error", () => {}); // told by the end below
    this.ended = new Promise((resolve) => {
      this.child.on("error", (why) => { this.#end(why); resolve(-1); });
      this.child.on("close", (code) => {
        this.#end(new Error(`sessile rpc ended (${code})`));
        resolve(code);
      });
    });
    const asks = Object.keys(options.answers ?? {});
    /** Who answers: its version, its store. */
    this.hello = this.call("rpc/hello", {
      protocol: @PROTOCOL@, client: options.name ?? "node", asks, embeds: options.embeds,
    });
    this.hello.catch(() => {}); // whoever awaits it is told
  }

  /**
   * Calls a method. An aborted signal cancels it: a run ends by itself, and says what stands.
   * @template {keyof Methods} M
   * @param {M} method
   * @param {Methods[M]["params"]} params
   * @param {{ signal?: AbortSignal }} [how]
   * @returns {Promise<Methods[M]["result"]>}
   */
  call(method, params, how = {}) {
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      if (this.gone) return reject(this.gone);
      this.waiting.set(id, { method, resolve, reject });
      how.signal?.addEventListener("abort",
        () => this.#send({ method: "rpc/cancel", params: { id } }));
      this.#send({ id, method, params });
    });
  }

  /** Ends the server after it has answered everything. Returns its exit code. */
  async close() {
    this.child.stdin.end();
    return this.ended;
  }

  /** @param {object} message */
  #send(message) {
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  /** @param {Error} why */
  #end(why) {
    this.gone ??= why;
    for (const one of this.waiting.values()) one.reject(this.gone);
    this.waiting.clear();
  }

  /** @param {string} piece */
  #take(piece) {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.#message(JSON.parse(line));
  }

  /** @param {any} message */
  #message(message) {
    if (message.method && message.id !== undefined) return void this.#answer(message);
    if (message.method) return this.options.onEntries?.(message.params);
    const one = this.waiting.get(message.id);
    if (!one) return;
    this.waiting.delete(message.id);
    if (message.error) one.reject(new SessileError(message.error, one.method));
    else one.resolve(message.result);
  }

  /** @param {any} message */
  async #answer(message) {
    const { id, method, params } = message;
    try {
      /** @type {any} */
      const answers = this.options.answers ?? {};
      const read = (/** @type {number} */ index, previous = false) =>
        this.call("run/message", { run: params.run, index, previous });
      const result = await answers[method.slice("ask/".length)](params, read);
      this.#send({ id, result });
    } catch (why) {
      const text = String(/** @type {any} */ (why)?.message ?? why);
      this.#send({ id, error: { code: -32000, message: text } });
    }
  }
}
]==]

-- An interface as a JSDoc type.
local function interface(name, about, list, is_result)
  local out = { ("/**\n * %s\n * @typedef {{"):format(about) }
  for _, one in ipairs(list) do
    out[#out + 1] = (" *   %q: { params: %s%s },"):format(one.name, ts.fields_text(one.params),
      is_result and "; result: " .. ts.result_text(one) or "")
  end
  out[#out + 1] = (" * }} %s\n */"):format(name)
  return table.concat(out, "\n")
end

local function types()
  local out = {}
  for _, one in ipairs(ts.each_type()) do
    out[#out + 1] = ("/** %s @typedef {%s} %s */"):format(one.about, one.text, one.name)
  end
  out[#out + 1] = interface("Methods", "What can be asked of the server.", ts.methods(), true)
  out[#out + 1] = interface("Asks", "What the server asks.", registry.asks, true)
  out[#out + 1] = interface("Notes", "What the server tells.", registry.notes, false)
  return table.concat(out, "\n")
end

--- The file.
---@return string
function client.text()
  local text = TEXT:gsub("@VERSION@", core.version):gsub("@PROTOCOL@",
    tostring(require "sessile.rpc.version".PROTOCOL))
  return text .. "\n" .. types() .. "\n"
end

return client
