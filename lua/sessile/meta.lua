---@meta sessile
-- meta.lua: annotations (LuaCATS) of everything that require "sessile" gives out, for
-- editors. Never required at run time; a spec compares it with what is registered. One long file,
-- since editors want one definition of the module.
--
-- Where a function says `nil, message, code`, that is how it fails: a sentence that names the
-- thing and what to do, and a code as "ENOTFOUND". Wrong types raise.

-- luacheck: ignore 241

---@class sessile
---@field version string
---@field null lightuserdata JSON's null
---@field key sessile.keys
---@field tools sessile.tools
---@field later table what a model function returns if the answer comes later: see Session:answer
local sessile = {}

---@class sessile.EncodingOptions
---@field pattern? string of a .tiktoken file: a regular expression, or the name of an encoding that
---  has the same
---@field folders? string|string[] searched for NAME.bpe before the usual places

---An encoding. It counts tokens exactly as the models that use it. Special
---tokens that stand in a text ("<|endoftext|>") are ordinary text.
---@class sessile.Encoding
---@field name string
local Encoding = {}

---The number of tokens of a text; nil, message, code
---@param text string
---@return integer?
---@return string? message
---@return string? code
function Encoding:count(text) end

---The ids of its tokens; nil, message, code
---@param text string
---@return integer[]?
---@return string? message
---@return string? code
function Encoding:encode(text) end

---The text of a list of ids; nil, message, "EINVALID" for an unknown id
---@param ids integer[]
---@return string?
---@return string? message
---@return string? code
function Encoding:decode(ids) end

---Frees it.
---@return true
function Encoding:close() end

---An encoding by name ("cl100k_base", "o200k_base") or, with a "/" in it, by the path of a
---.tiktoken file, of a tokenizer.json whose model is a byte-level BPE, or of a .bpe file
---@param name string
---@param options? sessile.EncodingOptions
---@return sessile.Encoding?
---@return string? message
---@return string? code
function sessile.encoding(name, options) end

---A text before it is written
---@class sessile.ScreenItem
---@field kind "message"|"custom"|"title"|"metadata"|"settings"|"state"|"memory"|"answer" what it
---  is for
---@field text string UTF-8
---@field source? "host"|"user"|"agent"|"tool"|"system" whose words it has; "host"
---@field role? string of a message
---@field author? string
---@field key? string of an entry of a memory; the kind of a custom entry
---@field json? boolean the text is JSON: its strings are looked at, without their escapes

---What one screen said, other than "pass"
---@class sessile.ScreenFinding
---@field verdict "flag"|"redact"|"refuse"
---@field screen string
---@field rule string a pattern, a rule that the file declares, the screen's name, or "failed"
---@field removed integer places that were removed from the text
---@field message? string why, if the rule does not say it; never has words of the text
---@field pointer? string of a schema: the place, as a JSON pointer

---@class sessile.ScreenOutcome
---@field verdict "pass"|"flag"|"redact"|"refuse" the highest of the findings
---@field text? string "redact": the text, with "[removed: RULE]" for what was removed
---@field findings sessile.ScreenFinding[]

---A list of screens. It says whether a text may be written; it writes nothing.
---@class sessile.Screens
local Screens = {}

---Runs the screens over an item, in their order, until one refuses
---@param item sessile.ScreenItem
---@return sessile.ScreenOutcome?
---@return string? message
---@return string? code "EINVALID": the text is not UTF-8, or not the JSON that it should be
function Screens:run(item) end

---Frees it.
---@return true
function Screens:close() end

---Screens, in the order in which they are run: a name, or a path, or {name, option = value, on =
---{kinds}}
---@class sessile.ScreenList
---@field [integer] string|table
---@field path? string|string[] folders to search for screens, before the usual ones
---@field schemas? table<string, table|string> a JSON Schema (draft 4 or 7) by kind, or by
---  "custom:KIND"
---@field verbose? boolean a screen that fails says what it raised, which may be words of the text

---Loads a list of screens. They ship: no_orders, secrets, injection
---@param list sessile.ScreenList
---@return sessile.Screens?
---@return string? message
---@return string? code
function sessile.screen(list) end

---@class sessile.UrlOptions
---@field allow? string[] what may be named: hosts ("localhost:3000"), domains (".example.org"),
---  addresses ("192.168.0.7", "[fd00::7]:80"), networks ("10.0.0.0/8")
---@field only_allowed? boolean no other host may be named
---@field resolve? boolean a name is resolved, within 2 s for all of a text, and refused if one of
---its addresses is, or if it has none; whoever connects still judges the address

---@class sessile.UrlFound
---@field rule string why: "loopback", "private", "metadata", "one-label", "scheme", … as
---  `sessile_guard.h` lists them
---@field url string the URL, up to its host
---@field at integer its first byte in the text

---Looks for URLs that lead to a machine that is not public, in whatever spelling. No name is
---resolved. true: there is none. nil, message, "EDENIED" and what was found; nil, message,
---"EINVALID" for an item of `allow`
---@param text string as a program would see it: without the escapes of JSON
---@param options? sessile.UrlOptions
---@return true?
---@return string? message
---@return string? code
---@return sessile.UrlFound? found
function sessile.url_check(text, options) end

---@class sessile.AddressOptions
---@field allow? string[] addresses, networks and "localhost" that may be connected to
---@field port? integer of the connection: items of `allow` with a port need it

---Judges the address that a connection is about to be made to. Call it before each connect, also
---after a redirect, with the address that is connected to. true: it is public. nil, message,
---"EDENIED"; nil, message, "EINVALID" if it is no address
---@param address string "203.0.113.7" or "2001:db8::7"
---@param options? sessile.AddressOptions
---@return true?
---@return string? message
---@return string? code
function sessile.address_check(address, options) end

---What a store, an agent, a session and a call can all configure. A key that is nil is inherited:
---by a call from its session, by a session from its agent, then from its store. A value replaces
---the inherited one as a whole; false is none.
---@class sessile.Inherited
---@field policy? sessile.PolicySpec|false
---@field fallback? sessile.PolicySpec|false runs once if the policy was refused; nil: the one that
---the policy's file names
---@field triggers? sessile.Triggers|false when to compact without asking the policy; false: never
---compact automatically: policies run only in compact, plan and branch
---@field checkpoint? sessile.CheckpointRules|false when turns make checkpoints automatically
---@field window? integer the model's window in tokens; 0 in a store: unlimited
---@field reserve? integer tokens to keep free in the window
---@field keep_min? integer number of newest messages that every policy must leave; 2
---@field timeout_ms? integer|string longest wait for another writer: ms, or "5s"; -1: for ever
---@field isolation? "none"|"worker" where policy files run: in this process or a separate one

---What the loops of a store, a session, an agent and a send can all configure: see Session:send.
---@class sessile.LoopSettings
---@field tools? table<string, sessile.Tool|function>
---@field before? sessile.Before|sessile.Before[]
---@field after? sessile.After|sessile.After[]
---@field reducer? sessile.Reducer
---@field max_steps? integer requests to the model; 50
---@field on_event? fun(event: sessile.Event)
---@field parallel? boolean|fun(tasks: function[]) several calls of one message: nil or true:
---in parallel in a coroutine; a function: runs all tasks and returns when they have ended
---@field commit? "step"|"turn" "step": each message is on disk before the next step; "turn":
---all of them become one turn at the end

---Defaults: `sessile config`.
---@class sessile.Limits
---@field message? integer bytes of one message
---@field session? integer bytes of one log
---@field depth? integer nesting of JSON
---@field id? integer bytes of an id, agent or user
---@field title? integer bytes of a title
---@field policy_gas? integer instructions of one pipeline
---@field policy_ms? integer its CPU time in ms
---@field policy_memory? integer bytes of a policy's Lua state
---@field policy_result? integer bytes a proposal may write
---@field sessions_per_agent? integer sessions of one agent, softly deleted ones included; default:
---no limit
---@field memory_value? integer bytes of a value in a memory, and of its `also`
---@field memory_key? integer bytes of a key in a memory
---@field memory_entries? integer entries of one memory, whatever their state
---@field memory_dims? integer dimensions of an embedding

---The version of an agent, kept in checkpoints.
---@class sessile.AgentInfo
---@field version? string
---@field config? string
---@field tools? string[]

---Embeds texts: a list of vectors, one for each; or nil and a reason. ctx: {purpose = "entry" or
---"question", model, dims, cancelled}.
---@alias sessile.EmbedFunction fun(texts: string[], ctx: table): number[][]?, string?

---Who embeds: a function, or as sessile.model takes it: {endpoint=, name=, dims=, key=},
---{command=, name=, dims=}, {lua=, name=, dims=}.
---@alias sessile.Embedder sessile.EmbedFunction|table

---An index of vectors outside of the store. ctx has agent, user (nil: what is for all) and model.
---What fails costs the vectors of a search, or the batch of a run. Functions return true, or nil
---and a reason.
---@class sessile.VectorIndex
---@field put fun(entries: {id: string, vector: number[]}[], ctx: table): true?, string?
---@field search fun(vector: number[], ctx: table): {id: string, score: number}[]?, string? the best
---ctx.limit
---@field remove? fun(ids: string[], ctx: table): true?, string? they were deleted or erased

---What a store and an agent set for long-term memories. An agent's replaces the store's key by key.
---@class sessile.MemorySettings
---@field enabled? boolean false: nothing is written to memories (EDENIED), nor is one created; they
---can be read and deleted from. Unless true, nothing is remembered or recalled automatically
---@field language? string of the words in new memories; "english"
---@field ttl? number|string|false new entries expire after this time, unless they say otherwise
---@field weight? number of embeddings in a search, 0 to 1; 0.3
---@field embed? sessile.Embedder|false who embeds entries and questions
---@field name? string of what embeds, if `embed` does not say; another name is another model
---@field dims? integer numbers of a vector, if `embed` does not say
---@field vectors? sessile.VectorIndex|false an index of vectors outside of the store
---@field share? boolean session:memory() writes to what the agent keeps for all
---@field zone? string offset from UTC by which days begin: "+02:00"; "UTC"
---@field open? integer of a store: memories that it keeps open for its sessions; 64, at least 2
---@field recall? sessile.RecallSettings|false how sends recall, if enabled is true
---@field policy? sessile.PolicySpec what remembers, tidies, admits and recalls: "memory"
---@field remember? table|false when sessions are heard by themselves, if enabled is true:
---{"compact", "close", turns = 10}; nil: after compactions and on closing
---@field trust? {tool: "pending"|"live"} what becomes of entries with a tool's words: "pending"

---The guard of a store. A key replaces that of the profile.
---@class sessile.GuardSettings
---@field profile? "standard"|"strict"|"off" "standard"
---@field require_principal? boolean the store's own handle makes views, and nothing else
---@field plain? boolean false: a store that is not sealed does not open, but for "ram:" (EDENIED)
---@field roles? table<string, table> NAME = { "view_session", …, all = true }
---@field rate_limits? sessile.GuardLimits|false a rule replaces that of the profile
---@field identity? {token: sessile.GuardToken?}
---@field authorize? string|false the file of a rule of your own, which can refuse a call
---@field consent? boolean as that of Store:guard
---@field screens? sessile.ScreenList|false
---@field schemas? table<string, table|string>|false a schema, its JSON text, or a file, by kind
---@field urls? sessile.UrlRules|false
---@field audit? boolean|table as that of Store:guard, but `store` is the URL of another store

---@class sessile.OpenOptions: sessile.Inherited, sessile.LoopSettings
---@field agent? string default agent of sessions; "main"
---@field key? sessile.Key|string|false false: a plain store; nil: $SESSILE_KEY or a key file, and
---  plain over an adapter, which takes 32 bytes as well
---@field suite? "aes-256-gcm"|"xchacha20-poly1305" of a new store
---@field durability? "sync"|"none"
---@field network? boolean allow writes on a network file system, if only one machine writes
---@field ttl? number|string|table<string, number|string> of new sessions: seconds, "30d"; or
---one for each agent
---@field model? sessile.Model
---@field model_name? string model to count tokens for; else the model that a session's turns or
---settings name last
---@field encoding? string "o200k_base", "cl100k_base", or a path of a .tiktoken or tokenizer.json;
---else the model's, if it is public
---@field encoding_path? string|string[] folders to search for encodings
---@field count? fun(text: string): integer? the host's counter, used if no encoding is known;
---it returns nil if it does not know. It must not yield or use sessile
---@field policy_path? string|string[] folders to search for policies
---@field worker? string the program for isolated policies; else the installed one
---@field agent_info? sessile.AgentInfo
---@field limits? sessile.Limits
---@field store? string the store, if the url is nil
---@field user? string default user of sessions
---@field agents? table<string, sessile.AgentSettings> overrides for the sessions of an agent
---@field memory? sessile.MemorySettings
---@field guard? "standard"|"strict"|"off"|sessile.GuardSettings sets a guard on the store; "off":
---none, though the store may have had one; nil: none
---@field on_policy_error? fun(message: string, code: string, key: string) told of a policy that
---cannot be loaded; key: "policy", "fallback" or "memory.policy", of an agent after "agents.NAME.".
---The store then opens, and a run that needs the policy fails. nil: the store, or that agent's
---session, does not open

---Options that override those of the store and are overridden by those of a session.
---@class sessile.AgentSettings: sessile.Inherited
---@field model? sessile.Model
---@field ttl? number|string|false
---@field enabled? boolean false: it gets no new session, and append, turn, send and an agent's run
---are EDENIED in its sessions; they can be read, compacted and deleted. It gets no new memory, and
---nothing is written to those that it has; they can be read, and their entries judged
---@field memory? sessile.MemorySettings

---The second argument of an adapter's functions.
---@class sessile.AdapterContext
---@field session {id: string, agent: string, user: string}
---@field reason string the operation: "create", "append", "turn", "save" …
---@field deadline? integer ms since 1970; nil: none

---@alias sessile.OuterId string|{session_id: string, user_id: string}

---A store kept by the host. All functions may yield.
---@class sessile.Adapter
---@field load fun(id: sessile.OuterId, ctx: sessile.AdapterContext): string[]?, any
---@field save fun(id: sessile.OuterId, new: {count: integer, records: string[]}, was: integer,
---  ctx: sessile.AdapterContext): boolean?, any
---@field delete? fun(id: sessile.OuterId, ctx: sessile.AdapterContext): boolean?, any
---@field list? fun(ctx: sessile.AdapterContext): table?, any

---Opens the store at a path, "file:PATH", "sqlite:PATH", "postgres://…" or "ram:"; nil means
---opts.store or the default. Or opens an adapter of yours.
---@param url? string|sessile.Adapter
---@param opts? sessile.OpenOptions
---@return sessile.Store? store
---@return string? message
---@return string? code
function sessile.open(url, opts) end

---The configuration. Its fields are options of sessile.open. The others, which pairs() skips, are
---used only by the command line.
---@class sessile.Config: sessile.OpenOptions
---@field retention? integer ms that a softly deleted session is kept
---@field models table<string, table> by their names
---@field files {path: string, kind: "own"|"project"|"named", trusted: boolean}[] that were read
---@field for_agent fun(self: sessile.Config, agent: string?): sessile.AgentConfig
---@field origin fun(self: sessile.Config, key: string): {from: string, file: string?,
---line: integer?, name: string?} of a key, as "limits.message" or "agents.coder.policy"
---@field value fun(self: sessile.Config, key: string): any the value read; nil: the default

---@class sessile.AgentConfig: sessile.AgentSettings
---@field model? function|table as sessile.model takes it
---@field model_name? string

---The configuration: $XDG_CONFIG_HOME/sessile/config.lua and ./sessile.lua, or $SESSILE_CONFIG,
---or the file you name. sessile.open(nil, sessile.config()) opens the store of the command line.
---Nothing else in the library reads these files. EUSAGE: a named file does not exist; EDENIED: a
---file is not trusted; EINVALID: it has an error, and the message tells the line.
---@param path? string
---@return sessile.Config? config
---@return string? message
---@return string? code
---@return string? step what to do
function sessile.config(path) end

---@class sessile.KeysInitOptions
---@field key? sessile.Key|false
---@field suite? "aes-256-gcm"|"xchacha20-poly1305"

---Creates the keyring of a store, and your key file if you have none. Does not open the store.
---EEXISTS: the store has a keyring.
---@param url? string
---@param opts? sessile.KeysInitOptions
---@return true? made
---@return string? message
---@return string? code
function sessile.keys_init(url, opts) end

---@class sessile.Place
---@field url string a path or URL, as of sessile.open
---@field key? sessile.Key|false
---@field suite? "aes-256-gcm"|"xchacha20-poly1305"
---@field timeout_ms? integer|string
---@field network? boolean

---@class sessile.MigrateOptions
---@field change? boolean allow sealed to plain, or plain to sealed
---@field into? boolean `to` may have sessions; they are never overwritten
---@field fresh? boolean EEXISTS also if the sessions in `to` are from an earlier run
---@field replace? boolean replace sessions there that differ; their logs are kept
---@field mirror? boolean `to` is only a copy: secrets of users who were forgotten in `from`
---   are removed there; needs the key of `from`
---@field whole? boolean `to` is a file or folder that appears when it is complete
---@field parts? ("sessions"|"keyring"|"users")[] what is copied unchanged; nil: all
---@field progress? fun(state: sessile.MigrateState): boolean? called after each piece; false: stop

---@class sessile.MigrateState
---@field stage "looking"|"copying"|"verifying"|"done"
---@field as_it_stands boolean bytes were copied; false: sealed again under the keys of `to`
---@field unopened boolean without a key: only bytes were compared
---@field moment boolean all sessions are from one moment
---@field sessions integer of this stage
---@field done integer of these, done
---@field bytes integer
---@field bytes_done integer
---@field copied integer new in `to`
---@field continued integer of which `to` had the beginning
---@field kept integer that `to` had
---@field replaced integer
---@field conflicts integer where `to` has another session of that name: not changed
---@field forgotten integer of forgotten users: unreadable
---@field gone integer deleted meanwhile
---@field failed integer not copied
---@field damaged integer damaged in `from`; if bytes are copied, with the damage
---@field verified integer read back or compared, and equal
---@field unfinished integer bytes of unfinished writes: not copied
---@field users integer users' secrets copied
---@field users_removed integer users' secrets removed (mirror)
---@field users_kept integer users' secrets that `from` lost, kept in `to`: nothing proves that the
---   user was forgotten
---@field failures? {log: string, message: string, code: string}[] at the end

---Copies every session of one store into another and reads it back. `from` is only read, and
---others may write to it. If `to` is empty the bytes are copied unchanged, and no key is
---needed. If it has a keyring, or a key is given for it, everything is sealed again.
---After an interruption, run it again to continue.
---ENOTFOUND, EEXISTS (`to` has sessions: see into), EINVALID (see change), ESEALED, EIO, EFULL.
---@param from string|sessile.Place|sessile.Store
---@param to string|sessile.Place|sessile.Store
---@param opts? sessile.MigrateOptions
---@return sessile.MigrateState? done
---@return string? message
---@return string? code
function sessile.migrate(from, to, opts) end

---Marks a table as an array, so that an empty one is written as []. Returns it.
---@generic T: table
---@param list? T
---@return T
function sessile.array(list) end

---A value that is written as exactly this JSON text.
---@param text string
---@return sessile.Json
function sessile.json(text) end

---@class sessile.Json
---@field json string

---Checks a proof of store:audit_prove, or the `json` of a receipt of store:erase_user, without a
---store. The key is what vouches for it: compare it with the root key that you have. Another one
---says nothing. EDAMAGED: it proves nothing.
---@param proof string
---@return table? event  with its `timestamp`
---@return string key_or_message
---@return string? code
function sessile.audit_check(proof) end

---An event of store:audit as one line, without its newline. `host` is the name of this machine, for
---syslog.
---@param event sessile.AuditEvent
---@param format "jsonl"|"ecs"|"ocsf"|"cef"|"syslog"
---@param options? {host: string?}
---@return string line
function sessile.audit_export(event, format, options) end

---The engine's fields of a message, an entry, settings or metadata that was read
---@class sessile.Facts
---@field id? string of a message: entry id, or the name of a policy's message ("00000016.1"); nil:
---  the engine added it, for a call without a result
---@field key? string the same
---@field tokens? integer of a message
---@field time? integer of a message, ms: its `timestamp`, else the entry's
---@field json string the stored text

---The engine's fields of what was read, also where a message has fields of these names itself:
---`m.id` of a provider's message may be the provider's id. nil: it was not read from a session.
---Hooks of policies need none: there the engine's fields come first.
---@param message table
---@return sessile.Facts?
function sessile.of(message) end

---A value as JSON text, by the rules of messages: sorted keys, {} is an object.
---@param value any
---@return string? text
---@return string? message
---@return string? code
function sessile.encode(value) end

---The value of a JSON text: plain tables, sessile.null for null. EINVALID: it is not JSON.
---`spans` names members of the outermost object that are left as they are written: each is
---sessile.json of its text, so that 1.50 or a number beyond 64 bits reaches a log unchanged.
---@param text string
---@param opts? {spans: string[]?}
---@return any value
---@return string? message
---@return string? code
function sessile.decode(text, opts) end

---A program that answers: it gets the request as JSON on standard input, and prints a text,
---or a JSON object with content or tool_calls, or {"error": {"message", "code"}}.
---@class sessile.ModelCommand
---@field dims? integer of memory.embed: numbers of a vector
---@field command string[] the program first; no shell is used
---@field timeout_ms? integer|string without output; "120s"; ten times that in total
---@field name? string what is recorded as the model
---@field window? integer its tokens; not recorded by the library

---An endpoint with the API of OpenAI's chat completions.
---@class sessile.ModelEndpoint
---@field dims? integer of memory.embed: numbers of a vector
---@field endpoint string "https://…/v1": /chat/completions is added if missing
---@field name string the model
---@field key? sessile.Key|false sent as a bearer token
---@field headers? table<string, string|sessile.Key>
---@field max_tokens? integer of an answer, if the request has none
---@field timeout_ms? integer|string without a byte; "120s"; ten times that in total
---@field insecure? boolean allow a key over http to another machine
---@field ca? string a file of authorities in place of the system's
---@field public_only? boolean connect to public addresses only, whatever the host's name means
---@field allow? string[] with public_only: hosts and addresses that may be connected to, too
---@field wait? fun(seconds: number) called in place of blocking; may yield
---@field window? integer

---@class sessile.ModelFile
---@field dims? integer of memory.embed: numbers of a vector
---@field lua string a file that returns a function
---@field name? string
---@field window? integer

---@alias sessile.ModelSpec sessile.Model|sessile.ModelCommand|sessile.ModelEndpoint|
---sessile.ModelFile|string

---Makes a function that asks a model, for `model=`. The function gets a request, and a function for
---text as it arrives or a loop's context. It returns a message or a text, or nil, message, code:
---EOVERFLOW the request is too long, EDENIED the key, ELIMIT rate or quota, ECANCELLED, EIO
---anything that may be tried again. sessile.model fails with EUNSUPPORTED (a package is missing) or
---ENOTFOUND.
---@param spec sessile.ModelSpec
---@param given? {models: table<string, sessile.ModelSpec>?}
---@return sessile.Model? model
---@return string? message
---@return string? code
function sessile.model(spec, given) end

---Starts a run without the loop: "turn" (messages, options), "compact" or "plan" (options),
---"branch" (id, options).
---@param s sessile.Session
---@param kind "turn"|"compact"|"plan"|"branch"
---@param ... any
---@return sessile.Run? run
---@return string? message
---@return string? code
function sessile.step(s, kind, ...) end

---@class sessile.StatelessOptions: sessile.SendOptions
---@field messages? sessile.Message[] earlier messages; without `message` the last is the new one
---@field message? string|sessile.Message
---@field session? sessile.Session makes it session:send

---Sends a message to a model, with tools and hooks. Only the outcome has the messages.
---@param opts sessile.StatelessOptions
---@return sessile.SendOutcome? outcome
---@return string? message
---@return string? code
function sessile.send(opts) end

---A tool or a hook returns this to pause its loop until somebody answers.
---@param given {reason: string?, state: any}
---@return sessile.Pause
function sessile.pause(given) end

---@class sessile.Pause
---@field reason? string
---@field state? any JSON-able

---A model, its tools and hooks, kept together.
---@param opts sessile.AgentOptions
---@return sessile.Agent
function sessile.agent(opts) end

---Tools for send and agents.
---@class sessile.tools
local tools = {}

---@class sessile.MemoryToolOptions
---@field style? "anthropic" one tool with the commands of Claude's memory tool (memory_20250818)
---@field pending? boolean what is written waits for a person
---@field share? boolean it is written to what the agent keeps for all, though there is a user

---Tools by which a model uses the memories of a session: memory_search, memory_read, memory_write
---and memory_delete, or with style "anthropic" one called memory, whose paths below /memories are
---keys. They read what is live, of whom consents, and no tool's words that nobody approved. They
---write in the agent's words. What would replace the words of the user or the host, or what is
---pinned or approved, waits for a person, and is not deleted.
---@param s? sessile.Session nil: the session that runs the tool
---@param opts? sessile.MemoryToolOptions
---@return table<string, sessile.Tool> tools
function tools.memory(s, opts) end

---@class sessile.keys
local key = {}

---@class sessile.Key

---The environment variable of that name.
---@param name string
---@return sessile.Key
function key.env(name) end

---A key file, mode 0600 or stricter.
---@param path string
---@return sessile.Key
function key.file(path) end

---The output of a program, without its last newline. No shell is used.
---@param argv string[]
---@return sessile.Key
function key.command(argv) end

---The secret itself.
---@param text string
---@return sessile.Key
function key.secret(text) end

-- ---------------------------------------------------------------- messages

---@alias sessile.Role
---| "system"|"developer"|"user"|"assistant"|"model"|"tool"|"function"

---@class sessile.ToolCall
---@field id string
---@field name? string
---@field arguments string JSON text, as the model gave it

---The caller's fields. A message that was read also has id, key, tokens, time and json, which
---pairs() skips.
---@class sessile.Message
---@field role sessile.Role
---@field content? string|table[]
---@field author? string
---@field tool_calls? sessile.ToolCall[]
---@field tool_call_id? string
---@field timestamp? integer ms since the epoch, the caller's
---@field usage? table
---@field metadata? table
---@field id? string entry id ("0000002a"), or the name of a policy's message ("00000016.1"). This
---  and the next four answer the message's own field if it has one: sessile.of never does
---@field key? string the same
---@field tokens? integer
---@field time? integer ms: its `timestamp` (ms, or a date and time), else the entry's
---@field json? string the stored text

---@class sessile.Entry
---@field id string
---@field parent_id string|lightuserdata
---@field timestamp string when it was written
---@field type string
---@field source? string "user", "agent", "system", "tool", "policy" or "host"
---@field author? string that of the message
---@field user? string|table the user of the session when it was written; not UTF-8: {b64 =}
---@field data table
---@field json string the stored text

-- ---------------------------------------------------------------- policies

---Answers with a text or, in a loop, with a message that may have tool_calls and usage; or
---fails with nil, a reason and perhaps a code: "EOVERFLOW" if the request was too long.
---@alias sessile.Model fun(request: sessile.ModelRequest, ctx: sessile.LoopContext):
---(string|sessile.Message)?, string?, string?

---@class sessile.ModelRequest
---@field messages sessile.Message[]
---@field max_tokens? integer
---@field purpose? string of a policy's question
---@field model? string the name of the wanted model
---@field tools? {name: string, description: string?, parameters: table?}[] in a loop, by name
---@field step? integer in a loop, from 1

---A name or path, {"name", option = …}, a table of hooks, or a chain of these.
---@alias sessile.PolicySpec string|sessile.HostPolicy|table

---When to run the `compact` hooks without asking the policy. Checked at the end of a turn.
---@class sessile.Triggers
---@field messages? integer after N messages since the last compaction, or the start
---@field interval? number|string after this time since then, a second or more: 600 (seconds), "10m"
---@field share? number used share of the window less the reserve: 0.8
---@field overflow? boolean the context does not fit window less reserve
---@field events? string[] names: one is given with the turn

---@class sessile.HostPolicy
---@field name? string
---@field version? any
---@field about? string
---@field options? table
---@field merge? fun(previous: sessile.Message[]?, next: sessile.State, ctx: sessile.Context): any
---@field summarize? fun(state: sessile.State, ctx: sessile.Context): any
---@field truncate? fun(state: sessile.State, ctx: sessile.Context): any
---@field should_compact? fun(state: sessile.State, ctx: sessile.Context): boolean?
---@field flush? fun(state: sessile.State, ctx: sessile.Context): any
---@field compact? fun(state: sessile.State, ctx: sessile.Context): any
---@field branch_summary? fun(abandoned: sessile.Message[], ctx: sessile.Context): string?
---@field remember? fun(said: table[], ctx: sessile.Context): any of memories, as the next three
---@field tidy? fun(entry: table, near: table[], ctx: sessile.Context): any
---@field recall? fun(question: string, found: table[], ctx: sessile.Context): table[]?
---@field admit? fun(entry: table, ctx: sessile.Context): boolean|"pending", string?

---@class sessile.Context
---@field options table
---@field session {id: string, agent: string, user: string, title: string, metadata: table}
---@field reason "turn"|"threshold"|"overflow"|"timer"|"event"|"manual"
---@field instructions? string
---@field now integer ms
---@field model fun(request: sessile.ModelRequest): string?, string?
---@field count fun(text: string): integer
---@field random fun(n?: integer): number
---@field log fun(...)
---@field sorted_pairs fun(t: table): fun(): any, any

---The context as one hook sees it. Indexes start at 1 and do not change while the hook runs.
---@class sessile.State
---@field messages sessile.Message[] oldest first, read-only
---@field tokens integer edits included
---@field window number math.huge: unlimited
---@field reserve integer
---@field keep_min integer number of newest messages that have to stay
---@field vars table what the policy remembers, stored from run to run
local State = {}

---Drops message i, or i to j.
---@param i integer
---@param j? integer
function State:drop(i, j) end

---Replaces fields of a message.
---@param i integer
---@param fields table
function State:replace(i, fields) end

---Inserts a message before i; covers: the range that it replaces. Its role is "user"; law 3 refuses
---"system", "developer", "assistant", "model", a message that calls a tool or has thinking, and one
---of a tool that answers no call.
---@param i integer
---@param message sessile.Message
---@param opts? {covers: integer[]}
function State:insert(i, message, opts) end

---@param n integer
---@param unit "messages"|"turns"|"tokens"
function State:keep_last(n, unit) end

---The newest cut that leaves about this number of tokens and keeps calls with their results.
---@param tokens integer
---@return integer
function State:find_cut(tokens) end

---@return table[]
function State:turns() end

---The messages that belong together with i.
---@param i integer
---@return integer[]
function State:pairs_of(i) end

-- ---------------------------------------------------------------- stores

---@class sessile.AuditOptions
---@field since integer|string|nil  ms since 1970, a date or an age: events written at or after that
---@field until integer|string|nil  before that
---@field user string?       a user's name, or the pseudonym that events have of them
---@field operation string?  as "append"
---@field outcome string?    "success", "failure", "intent" or "unknown"
---@field session string?
---@field agent string?
---@field limit integer?     events at most
---@field about string?      a user: only what is theirs, whoever did it
---@field names boolean?     false: users have pseudonyms alone (default: true)
---@field cursor string?     of another reader: goes on behind it
---@field follow boolean?    waits for events that are still to come
---@field timeout_ms integer|string|nil  of one wait; without it it waits for ever
---@field on_damage fun(message: string, code: string)?

---An event of the audit. Members that it does not say are nil.
---@class sessile.AuditEvent
---@field id string          as "00-000/0000002a"
---@field time integer       ms since 1970
---@field operation string
---@field outcome string     "success", "failure", "intent" or "unknown"
---@field code string?       of the error, as "DENIED"
---@field rule string?       that refused it
---@field user string?       a pseudonym
---@field name string?       of the user, who was not forgotten
---@field owner string?      whose session was named by somebody else: a hash
---@field actor string?
---@field agent string?
---@field role string?
---@field method string?     how the user was known
---@field key string?
---@field permission string?
---@field session string?
---@field entry string?
---@field count integer?     how many equal events it stands for
---@field request string?    the host's words
---@field source string?
---@field details table?     sizes, ids, options; never content
---@field json string        all of it

---@class sessile.AuditReader
---@field cursor fun(self): string
---@field wait fun(self, timeout_ms: integer): boolean
---@field close fun(self)

---@class sessile.AuditAnchor
---@field lane integer
---@field epoch integer
---@field hash string  64 hex digits

---@class sessile.AuditVerifyOptions
---@field root string?  64 hex digits
---@field anchors sessile.AuditAnchor[]?  of store:audit_head, kept elsewhere
---@field max_age integer|string|nil  events that are older must be sealed
---@field copy boolean?  this is a copy of the store, which has no seeds
---@field deep boolean?  each change of the sessions is looked for in the events, too
---@field progress fun(report: sessile.AuditReport)?

---A change that has no event, or (is_event) an event whose change is not there.
---@class sessile.AuditLost
---@field is_event boolean
---@field time integer
---@field entry string      "00000000": the session was made
---@field event string?     its id
---@field session string?   of a change
---@field agent string?
---@field owner string?     whose session, as events say it

---@class sessile.AuditReport
---@field holds boolean
---@field root string
---@field own_root boolean  the key is of the store itself
---@field lanes integer
---@field seals integer
---@field events integer    sealed
---@field unsealed integer
---@field unsealed_since integer?  when the oldest of them was written
---@field sealed integer?   when the newest seal was made
---@field cut_lanes integer  whose beginning the retention removed, and no anchor proves
---@field other_lanes integer
---@field bytes integer
---@field bytes_of integer
---@field where string?
---@field why string?
---@field complete boolean?  deep: all changes have an event, all events their change. The rest, too
---@field logs integer?      sessions that were read
---@field logs_of integer?
---@field changes integer?   entries that were compared
---@field outside integer?   not compared: from before the audit, with the guard off, or migrated
---@field unread integer?    sessions that do not open
---@field without_event integer?
---@field without_change integer?
---@field lost sessile.AuditLost[]?  the first of both

---@class sessile.Store
---@field url string
---@field sealed boolean
local Store = {}

---A table that names a session: of a list, a search or subsessions; an origin or a parent.
---@alias sessile.Row sessile.Listed|sessile.Hit|sessile.Subsession|sessile.Link

---Names a session: an id, the host's ids of its user and session, or a row that names it.
---@class sessile.Named
---@field id? sessile.OuterId|sessile.Row
---@field session_id? string
---@field user_id? string
---@field agent? string
---@field user? string

---@class sessile.SessionOptions: sessile.Named, sessile.Inherited, sessile.LoopSettings
---@field title? string of a new session
---@field metadata? table of a new session
---@field ttl? number|string|false of a new session: seconds, "30d"; false: never
---@field uuid? "v4"|"v7"
---@field model? sessile.Model
---@field agent_info? sessile.AgentInfo

---Creates a session; without an id it gets a new one.
---@param opts? string|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:create(opts) end

---Opens a session that exists. Without an agent it is that of the store's default agent, else the
---only one of this id and user; several: EINVALID, which names them. A store that was opened with
---`agent` finds only that agent's. ENOTFOUND.
---@param opts string|sessile.Row|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:resume(opts) end

---Opens a session, or creates it.
---@param opts string|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:session(opts) end

---@class sessile.PutOptions: sessile.Inherited, sessile.LoopSettings
---@field id? string default: the session's
---@field agent? string
---@field user? string
---@field model? sessile.Model

---Copies a session of another store whole into this one: every entry and branch, the same
---ids, sealed as this store seals. EEXISTS: this store has a session of that name.
---@param source sessile.Session
---@param opts? sessile.PutOptions
---@return sessile.Session? copy
---@return string? message
---@return string? code
function Store:put(source, opts) end

---@class sessile.Listed
---@field id? string
---@field agent? string
---@field user? string
---@field title? string
---@field created? integer ms
---@field modified? integer ms: when the newest message was said
---@field entries? integer
---@field messages? integer
---@field bytes integer
---@field torn integer bytes of a torn tail that were set aside on opening
---@field status string "active", "suspended", "archived", "expired" or "deleted"; or an error
---such as "EDAMAGED"; if it has entries it can be read
---@field labels? string[] each once, without pins
---@field ttl? integer ms
---@field expires? integer ms
---@field deleted? integer ms
---@field message? string

---The order of a list: newest or largest first, titles ascending.
---@alias sessile.Sort "modified"|"created"|"title"|"size"|"messages"

---@class sessile.ListOptions
---@field agent? string only of this agent
---@field prefix? string only ids with this prefix
---@field title? string only with exactly this title
---@field user? string only of this user
---@field label? string only with this label
---@field search? string only with this text in the title
---@field since? integer|string modified then or later: ms, "2026-02-01" (UTC), or "24h" ago
---@field until? integer|string modified before
---@field status? string|string[] only of these; nil: all but the deleted
---@field sort? sessile.Sort
---@field offset? integer skip this number
---@field limit? integer maximum; 0: none

---The sessions, newest first: by the time of the newest message. Only logs that are new or
---changed are opened; with `limit`, only as many as needed.
---@param opts? sessile.ListOptions
---@return sessile.Listed[]? rows
---@return string? message
---@return string? code
function Store:list(opts) end

---@class sessile.SearchOptions
---@field agent? string only in sessions of this agent; so prefix, title, user, label, since, until,
---status, sort as of a list
---@field prefix? string
---@field title? string
---@field user? string
---@field label? string
---@field since? integer|string
---@field until? integer|string
---@field status? string|string[]
---@field sort? sessile.Sort
---@field role? string only messages of this role, no titles and labels
---@field roles? string[] of these
---@field exact? boolean true: "A" is not "a"
---@field head_only? boolean only messages on the path to the head
---@field limit? integer maximum of hits; 0: none
---@field on_step? fun(step: sessile.Hit) called after each step, to show progress

---@class sessile.Hit
---@field kind "message"|"title"|"label"|"unread"|"nothing" unread: code and message say why;
---nothing: for on_step only
---@field session? string
---@field agent? string
---@field user? string
---@field title? string of the session
---@field entry? string the message, or what the label is on
---@field role? string of a message: who speaks; "tool" for results in a message of the user
---@field field? string of a message where it is: "content", "tool_calls", …
---@field text? string the first occurrence and its surroundings, UTF-8
---@field first? integer of the occurrence in text: text:sub(first, last)
---@field last? integer
---@field cut_before? boolean there is more before text
---@field cut_after? boolean
---@field time? integer ms: of the message or the label; of a title, of the newest message
---@field code? string
---@field message? string
---@field index integer which session this is
---@field total integer the number of them
---@field done integer its entries read so far
---@field entries integer its entries in total

---Searches titles, labels and messages of all sessions for a text, newest first, for a for loop.
---ASCII case is ignored. There is no index: logs are read while you iterate.
---@param text string
---@param opts? sessile.SearchOptions
---@return (fun(): sessile.Hit?)? iterator
---@return string? message
---@return string? code
function Store:search(text, opts) end

---@class sessile.MemoryOptions
---@field agent? string the store's, if nil
---@field user? string the store's; nil: what the agent keeps for all
---@field consent? string the user consents, in these words: written unless consent is in force
---@field language? string of a new memory's words: "english", "german", …
---@field must_exist? boolean ENOTFOUND instead of a new memory
---@field timeout_ms? integer|string

---Opens the long-term memory of an agent and a user, and creates it when it is not there. nil,
---message, code: EINVALID for an unknown language, ESEALED for a user who was forgotten.
---@param given? string|sessile.MemoryOptions an agent, or options
---@return sessile.Memory?
---@return string? message
---@return string? code
function Store:memory(given) end

---An entry of a memory.
---@class sessile.MemoryRow
---@field id string
---@field state string "live", "pending", "replaced", "deleted", "rejected", "expired", "erased"
---@field kind string "fact", "episode", "reflection", "procedure"
---@field source string whose words: "user", "agent", "tool", "system"
---@field key? string
---@field value string
---@field also? string
---@field author? string
---@field from? {session: string, agent: string, first: string, last: string}[]
---@field replaces? string[]
---@field metadata? table
---@field time integer ms
---@field expires? integer ms
---@field holds_from? integer ms
---@field holds_until? integer ms
---@field importance number
---@field pinned boolean
---@field approved boolean
---@field confirmed integer
---@field ended_by? string the verdict that ended it, or the entry that replaced it
---@field score? number of a hit
---@field cover? number of a hit: the share of the question's words that it met
---@field cos? number of a hit: its nearness to the question's vector
---@field explain? sessile.HitExplained of a hit, if asked for
---@field memory? "user"|"agent" which of a session's memories it is of

---How a score came about: (words + vectors) * (1 + recency + importance).
---@class sessile.HitExplained
---@field terms {term: string, field: "main"|"also", gave: number}[] words as they are compared, in
---what is shown ("main") or what it should be found by ("also"), and what each gave
---@field lex number the sum of what the terms gave
---@field words number the share of lex
---@field vectors number the share of the vectors
---@field recency number what it gains
---@field importance number what it gains

---The methods of a memory, and of the memories of a session (`sessile.Memories`).
---@class sessile.AnyMemory
local AnyMemory = {}

---@class sessile.VerdictOptions
---@field reason? string
---@field by? string who decides

---Ends an entry for good. What it had replaced stays replaced.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:delete(entry, opts) end

---Undoes an entry: what it had replaced is live again.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:reject(entry, opts) end

---A person vouches for an entry: one that was pending is live.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:approve(entry, opts) end

---Takes back a deletion, a rejection or a replacement; an expired entry expires no more.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:restore(entry, opts) end

---Pins an entry.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:pin(entry, opts) end

---Takes the pin off an entry.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:unpin(entry, opts) end

---Says that an entry was heard again elsewhere.
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.VerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
function AnyMemory:confirm(entry, opts) end

---@class sessile.ConsentOptions
---@field by? string
---@field text? string the words that the user was shown and agreed to; only false needs none
---@field scope? string

---Writes that the user consents, or with false: does no longer. Then nothing more is written.
---@param is_given boolean
---@param opts? sessile.ConsentOptions
---@return true?
---@return string? message
---@return string? code
function AnyMemory:consent(is_given, opts) end

---The live entry of a key. ENOTFOUND names a similar key, if one is found quickly.
---@param slot string a key
---@return sessile.MemoryRow?
---@return string? message
---@return string? code
function AnyMemory:read(slot) end

---@class sessile.MemoryFilter
---@field state? string nil: "live"
---@field kind? string
---@field source? string
---@field since? integer|string written at or after
---@field until? integer|string written before
---@field holds_at? integer|string true at that time, as far as it says
---@field prefix? string of the key
---@field session? string it is from this session
---@field session_agent? string of that session; nil: the memory's agent
---@field metadata? string|table it has this member; or { name = value }: this one, as it is

---@class sessile.MemoryListOptions: sessile.MemoryFilter
---@field day? string written on this day, "2026-02-01" or "today", in the zone that the store says
---@field limit? integer
---@field offset? integer

---Entries, newest first; live ones unless options say otherwise.
---@param opts? sessile.MemoryListOptions
---@return sessile.MemoryRow[]?
---@return string? message
---@return string? code
function AnyMemory:list(opts) end

---@class sessile.MemorySearchOptions: sessile.MemoryFilter
---@field limit? integer 10
---@field vector? number[]|false the question's embedding; nil: of who embeds; false: by words alone
---@field model? string whose it is; nil: the newest model that has a vector for all live entries
---@field weight? number of vectors, 0 to 1: 0.3
---@field recency? number how much a new entry gains: 0
---@field importance? number how much an important entry gains: 0
---@field min? number hits by words meet at least this share of the question's words: 0
---@field explain? boolean each hit says how its score came about

---What a search went by. why: there was no leg of vectors though somebody embeds here.
---@class sessile.SearchInfo
---@field legs {words: true, vectors: boolean, why?: string}

---Entries that answer a question, best first. Every word counts, none must occur. If somebody
---embeds here, the question is embedded; a failure of that costs the vectors, and the info says so.
---@param question string
---@param opts? sessile.MemorySearchOptions
---@return sessile.MemoryRow[]?
---@return sessile.SearchInfo|string? info the message of a failure
---@return string? code
function AnyMemory:search(question, opts) end

---@class sessile.EmbedOptions
---@field embed? sessile.Embedder instead of the one that is set
---@field name? string of it, if it does not say
---@field dims? integer of its vectors, if it does not say
---@field batch? integer texts of one request, at most 256: 64
---@field dry_run? boolean ask nobody: `to_embed` says how many there are
---@field timeout_ms? integer|string for locks
---@field on_progress? fun(embedded: integer, of: integer) before each request, and at the end

---@class sessile.EmbedOutcome
---@field verdict "applied"|"unchanged"|"refused" refused: an answer failed, and ended it
---@field embedded integer
---@field to_embed integer that still are to be
---@field model string
---@field message? string what failed

---Embeds the live entries that have no vector of the model, in batches, each durable when it came.
---@param self sessile.AnyMemory
---@param opts? sessile.EmbedOptions
---@return sessile.EmbedOutcome?
---@return string? message
---@return string? code
function AnyMemory:embed(opts) end

---What led to an entry, newest first: it, what it replaced by name or by key, and so on.
---@param entry string|sessile.MemoryRow a key, an id, or a row
---@return sessile.MemoryRow[]?
---@return string? message
---@return string? code
function AnyMemory:history(entry) end

---The newest consent; false if nobody ever consented.
---@return {given: boolean, by: string?, text: string?, scope: string?, time: string}|false|nil
---@return string? message
---@return string? code
function AnyMemory:consented() end

---Entries that wait for a person to approve or reject them, newest first.
---@return sessile.MemoryRow[]?
---@return string? message
---@return string? code
function AnyMemory:pending() end

---Where an entry comes from, and what ended it.
---@param entry string|sessile.MemoryRow a key, an id, or a row
---@return sessile.MemoryWhy?
---@return string? message
---@return string? code
function AnyMemory:why(entry) end

---What a person should look at among live and pending entries. A help, not a proof.
---@return sessile.MemoryFinding[]?
---@return string? message
---@return string? code
function AnyMemory:audit() end

---Deletes all that is live or pending, as one commit.
---@param opts? sessile.VerdictOptions
---@return integer? deleted how many
---@return string? message
---@return string? code
function AnyMemory:clear(opts) end

---Closes it.
---@return true
function AnyMemory:close() end

---What an agent keeps across sessions.
---@class sessile.Memory: sessile.AnyMemory
---@field damage? {code: string, message: string} it can be read, not written. What is lost is not
---there: an entry that a lost one replaced or deleted is live again
local Memory = {}

---@class sessile.MemoryWriteOptions
---@field also? string text that it should be found by, and that is not shown
---@field kind? "fact"|"episode"|"reflection"|"procedure"
---@field source? "user"|"agent"|"tool"|"system" whose words these are
---@field author? string
---@field from? {session: string, agent: string?, first: string, last: string?}[] messages
---@field replaces? string[] ids of entries that it corrects or merges
---@field importance? number 0 to 1
---@field ttl? number|string|false false: it never expires; nil: as the store or the agent says
---@field holds_from? integer|string
---@field holds_until? integer|string
---@field metadata? table
---@field pending? boolean a person has to approve it first
---@field pinned? boolean it is pinned, in the same commit
---@field was? string|false the live entry that the key is expected to have: else ECONFLICT

---Writes an entry. A key names a slot: the entry replaces the live one with this key.
---@param slot string? a key
---@param value string
---@param opts? sessile.MemoryWriteOptions
---@return string? id
---@return string? message
---@return string? code
function Memory:write(slot, value, opts) end

---@class sessile.EraseOptions
---@field history? boolean of an entry: all that led to it, too
---@field session? string what is from this session, alone or among others
---@field session_agent? string of that session; nil: the memory's
---@field ended_before? integer|string what was replaced, deleted or rejected, or expired, before

---Takes the texts of entries out of the log for good: of an entry, or of those that options name.
---Nothing brings them back; backups still have them.
---@param entry string|sessile.MemoryRow|sessile.EraseOptions|nil a key, an id or a row
---@param opts? sessile.EraseOptions
---@return integer? erased
---@return {outside: string}|string? info why memory.vectors still has them; or why it failed
---@return string? code
function Memory:erase(entry, opts) end

---@class sessile.DeleteFromOptions
---@field agent? string of the session; nil: the memory's
---@field by? string who decides

---Ends what came from a session that is deleted: what came from it alone is deleted, a merge with
---what came from elsewhere is rejected.
---@param session string its id
---@param opts? sessile.DeleteFromOptions
---@return integer? ended
---@return string? message
---@return string? code
function Memory:delete_from(session, opts) end

---Embeds what has no vector yet; or, with a model's name, writes embeddings that the caller has:
---vectors[i] is that of the entry ids[i].
---@param model? string|sessile.EmbedOptions
---@param ids? string[]
---@param vectors? number[][]
---@return sessile.EmbedOutcome|true?
---@return string? message
---@return string? code
function Memory:embed(model, ids, vectors) end

---@class sessile.MemoryModel
---@field name string
---@field dims integer
---@field vectors integer of entries of any state
---@field live integer of live entries
---@field missing integer live entries without one
---@field used boolean a search that names no model uses it

---The models that entries have vectors of.
---@return sessile.MemoryModel[]?
---@return string? message
---@return string? code
function Memory:models() end

---@class sessile.TidyOptions
---@field ids? string[] these entries; else the newest 64 that are live
---@field policy? sessile.PolicySpec else memory.policy
---@field model? sessile.Model else the store's
---@field dry? boolean write nothing

---Shows live entries, each with its neighbours, to the `tidy` hooks of a policy.
---@param opts? sessile.TidyOptions
---@return sessile.MemoryOutcome?
---@return string? message
---@return string? code
function Memory:tidy(opts) end

---An entry by its id, whatever became of it.
---@param id string
---@return sessile.MemoryRow?
---@return string? message
---@return string? code
function Memory:get(id) end

---@class sessile.MemorySource
---@field session string
---@field agent string
---@field first string
---@field last string
---@field messages? {id: string, role: string, content: any, message: table}[] at most 50
---@field more? boolean there are more than 50
---@field failure? string why the session cannot be read
---@field code? string

---@class sessile.MemoryMarkdownOptions
---@field day? string written on this day: "2026-02-01" or "today"

---The live entries as Markdown, one line each, below a heading for each kind.
---@param opts? sessile.MemoryMarkdownOptions
---@return string?
---@return string? message
---@return string? code
function Memory:markdown(opts) end

---@class sessile.MemoryEditOptions
---@field by? string who edits

---Makes the changes that turn one text of markdown() into another, as one commit. EINVALID names
---the line; ECONFLICT shows what was written meanwhile, and nothing is changed.
---@param before string
---@param after string
---@param opts? sessile.MemoryEditOptions
---@return {written: integer, replaced: integer, deleted: integer}? done
---@return string? message
---@return string? code
function Memory:edit(before, after, opts) end

---@class sessile.MemoryImportOptions
---@field name? string of the file: a date at its beginning is that of the entries
---@field source? "user"|"agent"|"tool"|"system" whose words these are; "agent"

---Writes what another program remembered: a text of Memory:markdown, mem0's JSON, the JSON lines of
---MCP's memory server, or Markdown. What the memory has, or once had, is left out.
---@param text string
---@param opts? sessile.MemoryImportOptions
---@return {written: integer, known: integer, format: string}? done
---@return string? message
---@return string? code
function Memory:import(text, opts) end

---What ended an entry: a verdict, or the entry in its place, which has the value.
---@class sessile.MemoryEnd
---@field id string
---@field state string
---@field time string
---@field by? string
---@field reason? string
---@field value? string

---@class sessile.MemoryWhy
---@field entry sessile.MemoryRow
---@field from sessile.MemorySource[]
---@field ended? sessile.MemoryEnd

---@class sessile.MemoryFinding
---@field what "order"|"address"|"secret"|"lowered"|"session" lowered: the engine trusts it less
---than the policy that proposed it, because its words are not those of its source
---@field row? sessile.MemoryRow of all but the last
---@field part? string what looks like it; never a secret
---@field session? string from which far more was remembered than from others
---@field agent? string
---@field entries? integer from that session
---@field usual? integer the median of all sessions

---@class sessile.MemoryWatchOptions
---@field after? string the id that the last call returned; nil: all that this handle has read
---@field timeout_ms? integer|string nil: waits for ever

---Waits until others have written: entries, verdicts, consents, vectors.
---@param opts? sessile.MemoryWatchOptions
---@return boolean? changed false: timeout
---@return string id_or_message the next `after`
---@return string? code
function Memory:watch(opts) end

---{entries, entries_most, nearly_full (80 % of that, or more), live, pending, replaced, deleted,
---rejected, expired, erased, keys, verdicts, vectors, dims, model, language, consented, consent,
---log_entries, log_bytes, memory_bytes, created}
---@return table?
---@return string? message
---@return string? code
function Memory:stats() end

---@class sessile.SharedWriteOptions: sessile.MemoryWriteOptions
---@field share? boolean write to what the agent keeps for all, though the session has a user

---@class sessile.SharedVerdictOptions: sessile.VerdictOptions
---@field share? boolean a key or an id is of what the agent keeps for all

---The memories of a session: its user's, if it has a user, and what its agent keeps for all.
---
---Verdicts and `erase`: a row is judged in its own memory, a key or an id where a write would go.
---`read`, `history` and `why`: in the user's memory, or if it has no such entry, in the agent's.
---`list`, `pending`, `audit` and `search`: of both; of equal times or scores the user's first. A
---score compares the entries of one memory: each has its best near 1. `clear`: where a write would
---go. `close` ends its use; the store keeps the memories open for other sessions. What is of one
---memory (Markdown, imports, embeddings) is asked of `store:memory`.
---@class sessile.Memories: sessile.AnyMemory
local Memories = {}

---Writes an entry to the user's memory; to the agent's with `share`, or if there is no user.
---EDENIED: the user has not consented.
---@param slot string? a key
---@param value string
---@param opts? sessile.SharedWriteOptions
---@return string? id
---@return string? message
---@return string? code
function Memories:write(slot, value, opts) end

---An entry by its id, or again by its row. Both memories may have the id: then it is the user's.
---@param entry string|sessile.MemoryRow
---@return sessile.MemoryRow?
---@return string? message
---@return string? code
function Memories:get(entry) end

---A verdict: see the methods of sessile.AnyMemory.
---@param self sessile.Memories
---@param entry string|sessile.MemoryRow the key of a live entry, an id, or a row
---@param opts? string|sessile.SharedVerdictOptions a text is the reason
---@return boolean? changed
---@return string? message
---@return string? code
local function shared_verdict(self, entry, opts) end

Memories.delete = shared_verdict
Memories.reject = shared_verdict
Memories.approve = shared_verdict
Memories.restore = shared_verdict
Memories.pin = shared_verdict
Memories.unpin = shared_verdict
Memories.confirm = shared_verdict

---@class sessile.SharedEraseOptions: sessile.EraseOptions
---@field share? boolean a key, an id or `ended_before` is of what the agent keeps for all

---Takes the texts of entries out of the log for good: of an entry as for a verdict; what is from a
---session, in both memories; what ended before a time, where a write would go.
---@param entry string|sessile.MemoryRow|sessile.SharedEraseOptions|nil a key, an id or a row
---@param opts? sessile.SharedEraseOptions
---@return integer? erased
---@return string? message
---@return string? code
function Memories:erase(entry, opts) end

---Deletes all that is live or pending where a write would go, as one commit.
---@param opts? sessile.SharedVerdictOptions
---@return integer? deleted how many
---@return string? message
---@return string? code
function Memories:clear(opts) end

---What Memory:stats() says of each that is there.
---@return {user: table?, agent: table?}?
---@return string? message
---@return string? code
function Memories:stats() end

---@class sessile.UndeleteOptions: sessile.Named
---@field actor? string who does it

---@class sessile.DeleteOptions: sessile.UndeleteOptions
---@field soft? boolean
---@field memory? boolean what long-term memories have from it ends, too
---@field reason? string

---Deletes a session permanently, or softly: then it can be undeleted until it is purged. Without an
---agent it is found as by resume: the default agent's, else the only one of that id. An adapter
---returns true, or false if it kept the session; it has no soft deletion (EUNSUPPORTED).
---@param which string|sessile.Row|sessile.DeleteOptions
---@param opts? sessile.DeleteOptions
---@return {id_hash: string, time: integer, bytes: integer?}|boolean|nil gone
---@return string? message
---@return string? code
function Store:delete(which, opts) end

---@class sessile.Deletion
---@field time integer ms
---@field id_hash? string as delete returned it; nil: the record does not open
---@field bytes integer size of the log
---@field id? string nil if the session had a user, who may want to be forgotten
---@field agent? string
---@field reason? string
---@field actor? string

---Lists the records of sessions that were deleted permanently, newest first.
---@return sessile.Deletion[]? rows
---@return string? message
---@return string? code
function Store:deletions() end

---@class sessile.StoreNode
---@field name string
---@field address string where the others connect to it
---@field version string
---@field started integer ms
---@field left integer ms of its lease; 0 or less: it ran out so long ago
---@field living boolean
---@field sessions integer that it keeps open
---@field calls integer that it has served

---Lists the servers that share the store, by name. Only a PostgreSQL store has them: else
---EUNSUPPORTED.
---@return sessile.StoreNode[]? rows
---@return string? message
---@return string? code
function Store:nodes() end

---How many standbys of the store's database stream and are waited for by commits. Only a PostgreSQL
---store has them: else EUNSUPPORTED.
---@return integer|false|nil standbys false: the database role may not see them (pg_read_all_stats)
---@return string? message
---@return string? code
function Store:standbys() end

---Restores a session that was deleted softly.
---@param which string|sessile.Row|sessile.UndeleteOptions
---@param opts? sessile.UndeleteOptions
---@return true? ok
---@return string? message
---@return string? code
function Store:undelete(which, opts) end

---@class sessile.Credential
---@field user? string whose sessions are its own
---@field actor? string who acts for the user
---@field roles? string|string[] of a view of a view: nil keeps what that may
---@field agents? string|string[] names, or beginnings of names that end with `*`; nil: every agent
---@field session? string the only session that it may use
---@field agent? string the agent of that session; nil: the one in `agents`, or the store's
---@field owner? string the user of that session; nil: the view's
---@field expires? integer ms since 1970; nil: never
---@field key? string an access key, instead of user, roles and agents
---@field token? string a JWT, instead of these
---@field os? boolean whom the system lets open the store: no user, role admin
---@field source? string where it comes from, for the audit and for counting failures
---@field device? string compared if the key names one

---@class sessile.Principal
---@field user? string
---@field actor? string who acts for the user
---@field session? string the only session that it may use
---@field agents? string[] names, or beginnings of names that end with `*`; nil: every agent
---@field permissions string[]
---@field all boolean the sessions of all users; false: those of `user`
---@field host boolean the host's own handle: everything is allowed
---@field method string "host", "os", "key" or "token"
---@field key? string the id of its access key, or of its token
---@field expires? integer ms since 1970

---How often each user may do what: "10/minute", with second, minute, hour or day, or "off". A call
---over its limit is refused with ELIMIT, retry_ms and the rule.
---@class sessile.GuardLimits
---@field session_creation? string a user; "10/minute"
---@field checkpoint_writes? string a session; "100/minute"
---@field memory_reads? string a session, or a memory; "1000/minute"
---@field memory_writes? string a user; "100/minute"
---@field branch_operations? string a session; "20/minute"
---@field searches? string a user; "60/minute"
---@field exports? string a user; "10/hour"
---@field grants? string a user: grants, their ends, access keys, unlocks; "60/minute"
---@field failures? string a source of refused credentials; "10/minute"
---@field shared? string the URL of a Redis server that all nodes count in
---@field deny? boolean refuse what cannot be counted there

---@class sessile.GuardAudit
---@field store? sessile.Store another store, which keeps the audit
---@field sync? boolean sync the event of each change before its call returns
---@field reads? boolean false: reads leave no event
---@field closed? boolean read nothing, either, while no event can be written

---@class sessile.GuardToken
---@field issuer string what `iss` must be
---@field audience string what `aud` must be or contain
---@field keys string a JWKS file, which nobody else may write
---@field user? string the claim of the user, or a JSON pointer to it; nil: "sub"
---@field roles? string nil: "roles"
---@field agents? string nil: "agents"
---@field actor? string nil: "/act/sub"

---By kind of text ("message", "custom", "title", "metadata", "settings", "state", "memory",
---"answer"): "refuse", "flag" or "pass". memory and state: "refuse" when they are not given
---@class sessile.UrlRules: sessile.UrlOptions
---@field [string] "refuse"|"flag"|"pass"

---@class sessile.GuardOptions
---@field roles? table<string, table> NAME = { "view_session", …, all = true }, beside viewer,
---editor, admin and auditor
---@field require_principal? boolean the store's own handle makes views, and nothing else
---@field limits? boolean|sessile.GuardLimits
---@field audit? boolean|sessile.GuardAudit
---@field token? sessile.GuardToken JWTs are accepted
---@field authorize? string a Lua file with a rule that can refuse a call which the rest allows
---@field profile? string a name, and the store stays guarded: who opens it later may do nothing
---before they set a guard
---@field consent? boolean a search finds nothing in the memory of a user who does not consent, and
---only the user consents, or who may manage_privacy
---@field off? boolean no guard, also of a store that stayed guarded: it does not any more
---@field screens? sessile.ScreenList|sessile.Screens what each write of the store meets, whoever
---  makes it
---@field schemas? table<string, table|string> a JSON Schema by kind, as in sessile.screen
---@field urls? sessile.UrlRules|false what is done with URLs that sessile.url_check refuses; nil:
---  memories and states are refused

---Sets a guard: from now on `store:as` makes views that may less. Handles that were opened before
---are not guarded. EINVALID: the store has a guard, or a role names a permission that there is not.
---@param opts? sessile.GuardOptions
---@return true? done
---@return string? message
---@return string? code
function Store:guard(opts) end

---Runs the store's rules over an item, as a write of it would, and writes nothing. A store without
---rules lets all pass
---@param item sessile.ScreenItem
---@return sessile.ScreenOutcome?
---@return string? message
---@return string? code
function Store:screen(item) end

---A view of a store with a guard: a store for a user, which may what its roles give. Close it
---before the store. A view of a view only narrows, and is of the same user (EDENIED).
---@param credential sessile.Credential
---@return sessile.Store? view
---@return string? message
---@return string? code
function Store:as(credential) end

---Lets a view live on, with what both credentials give: view:renew(credential), with a newer key or
---token of the same user; or store:renew(view, with), by the word of the store that made the view,
---until a time in ms since 1970 (0: without an end). EDENIED: a view without either.
---@param view sessile.Store|sessile.Credential|integer
---@param with? integer|sessile.Credential
---@return true? done
---@return string? message
---@return string? code
function Store:renew(view, with) end

---@class sessile.Grant
---@field id? string
---@field user? string who is given it
---@field holders? string or: all who have this role, or are in a group of this name by their token
---@field role string
---@field agents? string|string[] names, or beginnings that end with `*`; nil: every agent
---@field session? string the id of one session, of `agent` and `owner`
---@field agent? string
---@field owner? string its user; nil: one's own
---@field until? integer ms since 1970; nil: until it is ended
---@field by? string who granted it
---@field created? integer ms since 1970

---Gives somebody a role, beside those of their credentials. It is in force within a second, in
---other processes too. Needs manage_access; without it a user shares a session of its own.
---@param grant sessile.Grant
---@return string? id
---@return string? message
---@return string? code
function Store:grant(grant) end

---The grants in force; without manage_access those to oneself, and on one's own sessions.
---@return sessile.Grant[]? grants
---@return string? message
---@return string? code
function Store:grants() end

---Ends a grant. ENOTFOUND: it is not in force.
---@param id string
---@return true? done
---@return string? message
---@return string? code
function Store:ungrant(id) end

---@class sessile.AccessKey
---@field id? string
---@field user? string
---@field roles? string|string[]
---@field agents? string|string[]
---@field device? string what the credential must name, too
---@field label? string for people
---@field expires? integer ms since 1970; nil: never
---@field by? string who made it
---@field created? integer ms since 1970

---Makes an access key. Its text is shown once: the store keeps a hash.
---@param what sessile.AccessKey
---@return string? text
---@return string? message
---@return string? code
function Store:access_key(what) end

---The access keys that were not revoked.
---@return sessile.AccessKey[]? keys
---@return string? message
---@return string? code
function Store:access_keys() end

---Revokes an access key by its id, for ever.
---@param id string
---@return true? done
---@return string? message
---@return string? code
function Store:revoke_key(id) end

---Locks a user or a key out: within a second each view of it is EDENIED.
---@param lock {user: string?, key: string?, reason: string?}
---@return true? done
---@return string? message
---@return string? code
function Store:lock(lock) end

---Ends a lock. ENOTFOUND: there is none.
---@param lock {user: string?, key: string?}
---@return true? done
---@return string? message
---@return string? code
function Store:unlock(lock) end

---The locks in force.
---@return {user: string?, key: string?, reason: string?, by: string?, created: integer}[]? locks
---@return string? message
---@return string? code
function Store:locks() end

---Ends what a view, and each view of it, may: later calls are EDENIED.
---@return true? done
---@return string? message
---@return string? code
function Store:revoke() end

---The events of the audit, oldest first: `for event in store:audit { outcome = "failure" } do`. The
---reader has `cursor()`, a text from which another reader goes on, `wait(timeout_ms)`, which
---returns whether something was written meanwhile, and `close()`. Without `follow` it ends with the
---newest event, and can be called again. It raises if the audit cannot be read, unless `on_damage`
---takes that: the rest is read then. What is read was not verified: `store:audit_verify`.
---
---ENOTFOUND: the store has no audit. EINVALID: no cursor. EDENIED: no permission `read_audit`.
---@param opts? sessile.AuditOptions
---@return sessile.AuditReader? reader
---@return string? message
---@return string? code
function Store:audit(opts) end

---Reads all of the audit, and compares it with its seals. `holds` says whether it is what was
---sealed; else `where` and `why` name the first event that is not. Without `root`, the key that was
---kept elsewhere, the one in the store itself is used, and the report has `own_root`. With `deep`
---the report says of each change of a session whether it has an event: `complete`, else `lost`.
---
---ENOTFOUND: the store has no audit. EINVALID: no key. EDENIED.
---@param opts? sessile.AuditVerifyOptions
---@return sessile.AuditReport? report
---@return string? message
---@return string? code
function Store:audit_verify(opts) end

---The public key that vouches for the audit: 64 hex digits. Keep it where the store is not.
---@return string? root
---@return string? message
---@return string? code
function Store:audit_root() end

---The last seals, as `anchors` of store:audit_verify. Everything is verified first. EDAMAGED: it
---does not hold.
---@param opts? {root: string?, copy: boolean?}
---@return sessile.AuditAnchor[]? anchors
---@return string? message
---@return string? code
function Store:audit_head(opts) end

---Seals what was written to the audit.
---@return true? done
---@return string? message
---@return string? code
function Store:audit_seal() end

---A proof that an event is in the audit, for sessile.audit_check: JSON. ESUSPENDED: it is not
---sealed yet.
---@param id string  of the event
---@return string? proof
---@return string? message
---@return string? code
function Store:audit_prove(id) end

---Who uses the store. EINVALID: it has no guard. EDENIED: it stays guarded, and no guard was set on
---this handle; the message has the profile.
---@return sessile.Principal? principal
---@return string? message
---@return string? code
function Store:who() end

---Whether a call that needs this permission would pass, on the session of these names.
---@param permission string
---@param on? {agent: string?, user: string?, id: string?}
---@return boolean
function Store:can(permission, on) end

---@class sessile.StoreConsent
---@field agent? string who remembers; nil: the store's agent
---@field user? string who is remembered
---@field given? boolean false: the consent is withdrawn; nil: it is given
---@field keep? boolean withdrawn: what is remembered stays
---@field by? string who says so
---@field text? string given: the words that the user was shown and agreed to
---@field scope? string to what

---Writes that a user consents to be remembered by an agent, or does no longer: then what is
---remembered is erased. ENOTFOUND: there is no memory to withdraw it from. EDENIED with the rule
---`hold:ID`: it is withdrawn, and what is remembered stays under that hold.
---@param opts sessile.StoreConsent
---@return integer? erased entries
---@return string? message
---@return string? code
function Store:consent(opts) end

---@class sessile.ConsentRow
---@field agent string
---@field user string
---@field given boolean
---@field time? integer ms since 1970, of the newest word about it; nil: the user was never asked
---@field by? string
---@field text? string
---@field text_hash? string BLAKE2b-256 of the text, in hex
---@field scope? string
---@field entries integer that are kept

---The memories of a user, or of all users, and whether they consent to them; by agent.
---@param user? string
---@return sessile.ConsentRow[]? rows
---@return string? message
---@return string? code
function Store:consents(user) end

---@class sessile.HoldOptions
---@field reason? string why; needed
---@field user? string all of this user
---@field agent? string all of this agent, or what it has of the user
---@field session? string this session alone, of the agent (nil: the store's) and the user
---@field by? string who wants it
---@field until? string|integer when it ends: "90d" from now, "2027-01-01", or ms since 1970

---Keeps data from being removed for good: each deletion of it is EDENIED, with the rule `hold:ID`,
---and a purge passes it over. A soft deletion is let. It binds whoever opens the store.
---@param opts sessile.HoldOptions
---@return string? id
---@return string? message
---@return string? code
function Store:hold(opts) end

---@class sessile.HoldRow
---@field id string
---@field reason string
---@field user? string
---@field agent? string
---@field session? string
---@field by? string
---@field time integer ms since 1970
---@field until? integer ms since 1970

---The holds in force, oldest first.
---@return sessile.HoldRow[]? rows
---@return string? message
---@return string? code
function Store:holds() end

---Ends a hold. ENOTFOUND: it is not in force.
---@param id string
---@param opts? {by: string?}
---@return true? done
---@return string? message
---@return string? code
function Store:release(id, opts) end

---@class sessile.RetentionOptions
---@field sessions? number|string|false a session, after its newest entry; nil, false: for ever
---@field deleted? number|string|false a session that was deleted softly; nil: "90d"
---@field memory? number|string|false an entry of a memory, after it was written; nil: for ever
---@field audit? number|string|false an event of the audit; nil: for ever
---@field agents? table<string, table> the first three for an agent: they go before those above
---@field users? table<string, table> the same for a user: they go before those of agents
---@field dry_run? boolean remove nothing

---Removes what is kept longer than it says. Nothing else removes anything by itself: run it from a
---timer. held: sessions and memories that a hold keeps; closed: memories that do not open. The
---audit loses whole logs (audit_logs), and none while a hold is in force (audit_held).
---@param opts sessile.RetentionOptions
---@return table<"sessions"|"bytes"|"entries"|"held"|"closed"|"audit_logs"|"audit_held", integer>?
---@return string? message
---@return string? code
function Store:purge_retention(opts) end

---Hands out all that the store keeps of a user: each session and memory as JSON and as Markdown,
---the consents, the grants and events of a store with a guard, and last manifest.json with the
---SHA-256 of the others and what was left out. write(name, text) is called
---for each file (names have a `/`) and returns true, or nil, message, code, which end the export.
---failed: sessions that could not be read, which the manifest names. ENOTFOUND: there is nothing.
---@param user string
---@param write fun(name: string, text: string): boolean?, string?, string?
---@return {sessions: integer, memories: integer, files: integer, failed: integer}? done
---@return string? message
---@return string? code
function Store:export_user(user, write) end

---@class sessile.Receipt
---@field time integer ms since 1970
---@field subject string the user: a hash under a key of the store
---@field shredded boolean the user's secret was destroyed; false: a plain store
---@field sessions integer removed
---@field memories integer removed
---@field bytes integer
---@field shared_entries integer erased from what agents keep for all
---@field consents integer of the user, which went with the memories
---@field grants integer to the user and on the user's sessions, which were ended
---@field access_keys integer of the user, which were ended
---@field locks integer of the user, which were ended
---@field before? integer ms since 1970: the user was erased then, and nothing came since
---@field event? string the id of its event in the audit; nil: there is none
---@field forks integer not reached: sessions of others with entries of the user's
---@field without_user integer not reached: sessions of no user
---@field unreadable integer logs that do not say whose they are
---@field json string all of it, with what else was not reached, and the proof of its event: for
---sessile.audit_check

---Erases a user: destroys the user's secret, removes every session and memory of the user, and what
---agents keep for all from these sessions, and ends what the user was given. After an error or a
---crash, call it again: the receipt counts what was removed in all. ENOTFOUND: nothing is known of
---the user. EDENIED with the rule `hold:ID`: a hold keeps something of the user, and nothing was
---removed.
---@param user string
---@param opts? {dry_run: boolean?}
---@return sessile.Receipt? receipt
---@return string? message
---@return string? code
function Store:erase_user(user, opts) end
---@class sessile.OwnOperation
---@field permission string that it needs
---@field limit? string the rule that counts it
---@field agent? string of the session that it concerns
---@field user? string
---@field id? string
---@field reads? boolean it changes nothing, and is only counted

---Whether an operation of your own may be done now: it is checked, counted and recorded as the
---engine's are. Ask once, right before it. EDENIED, ELIMIT, or an error of the audit.
---@param name string 1 to 63 bytes; events call it "host:NAME"
---@param opts sessile.OwnOperation
---@return true? done
---@return string? message
---@return string? code
---@return integer? retry_ms
---@return string? rule
function Store:may(name, opts) end

---Writes an event of your own into the audit, as "host:NAME". EINVALID: the store has no audit.
---@param name string
---@param details? table of names, numbers and booleans: never content
---@return true? done
---@return string? message
---@return string? code
function Store:note(name, details) end

---Deletes expired sessions, and those deleted softly longer ago than `retention` ("90d").
---@param opts? {agent: string?, user: string?, retention: number|string|nil, dry_run: boolean?}
---@return sessile.Listed[]? rows the deleted sessions, or with dry_run those that would be
---@return string? message
---@return string? code
function Store:purge(opts) end

---Removes what is left of the sessions of forgotten users (`store:forget`), which nothing opens.
---@param opts? {agent: string?, dry_run: boolean?}
---@return {sessions: integer, bytes: integer}? removed or with dry_run what would be
---@return string? message
---@return string? code
function Store:purge_forgotten(opts) end

---@class sessile.Finding
---@field severity "note"|"warning"|"damage"
---@field code? string as "EDAMAGED"
---@field session? string
---@field agent? string
---@field file string below the store
---@field entry? string its id
---@field offset integer
---@field bytes integer
---@field what string a sentence
---@field next? string the command to type

---@class sessile.Report
---@field ok boolean nothing is damaged, or all damage was salvaged
---@field sessions integer
---@field entries integer
---@field bytes integer
---@field lost integer entries that cannot be read
---@field damaged integer logs
---@field salvaged integer logs
---@field findings sessile.Finding[]

---A count of tokens and its accuracy.
---@class sessile.Tokens
---@field tokens integer
---@field low integer
---@field high integer
---@field source "usage"|"exact"|"host"|"fitted"|"estimate" of several: the least exact
---@field missing? string of a store's counts: why the wanted encoding is not used
---@field each? sessile.Tokens[] of count_messages: one for each message

---Which of these open sessions others have written to since they were read: one question to the
---store for up to 10,000 of them. Reading them shows the new entries. A session that was removed is
---among them each time.
---@param sessions sessile.Session[] of this store
---@return sessile.Session[]? changed in the same order
---@return string? message
---@return string? code
function Store:changed(sessions) end

---Compares this machine's clock with that of the store's server. Expiry and retention go by the
---times of entries, which are those of the machines that wrote them.
---@return integer? ahead_ms below 0: this machine's clock is behind; 0: the store has no other one
---@return integer|string within_ms_or_message half the time that the question took
---@return string? code
function Store:clock() end

---Tokens of a text: by the encoding of the store's model, else by the host's counter, else by
---estimate.
---@param text string
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Store:count(text) end

---Tokens of messages outside of a session.
---@param list sessile.Message[]
---@param opts? {model: string?, tools: table[]?, system: string?}
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Store:count_messages(list, opts) end

---@class sessile.CheckOptions: sessile.Named
---@field salvage? boolean replace a damaged log; the old one is kept
---@field on_step? fun(step: table) called after each log

---Checks one session or all of them. Changes nothing, unless `salvage` is set.
---@param opts? string|sessile.Row|sessile.CheckOptions
---@return sessile.Report? report
---@return string? message
---@return string? code
function Store:check(opts) end

---@class sessile.Keys
---@field sealed boolean false: plain; then only logs is there
---@field logs integer
---@field suite? string how new sessions are sealed
---@field source? string where the secret came from: "default", "env", "file", "secret"
---@field kdf? "none"|"argon2id" argon2id: the secret is a passphrase
---@field kdf_ops? integer
---@field kdf_mem? integer bytes
---@field users? integer users with a secret of their own
---@field user_logs? integer logs sealed with one
---@field old_logs? integer that reseal would seal again
---@field odd_logs? integer whose first line could not be read
---@field epochs? {epoch: integer, logs: integer}[] newest first

---Facts about the store's keys; never a key.
---@return sessile.Keys? keys
---@return string? message
---@return string? code
function Store:keys() end

---@class sessile.RotateOptions
---@field key? sessile.Key the new secret; nil: the same secret, a new epoch
---@field make? boolean with key.file: create it with a random key if missing

---Starts a new epoch, whose key seals new sessions; or, with `key`, changes the secret of the
---store, so that the old one no longer opens it. Sessions do not change. A new secret wraps the
---same master keys: it starts no epoch, and with an old copy of the keyring the old secret opens
---every session.
---After a leak: `rotate{key=…}`, `rotate()`, `reseal()`.
---@param opts? sessile.RotateOptions
---@return integer? epoch the newest
---@return boolean|string new whether this call started it; or the message of the error
---@return string? code
function Store:rotate(opts) end

---@class sessile.ResealState
---@field logs integer in the store
---@field seen integer of these, done
---@field resealed integer
---@field forgotten integer of forgotten users
---@field failed integer not changed
---@field dropped integer older epochs, removed at the end
---@field failures? {log: string, message: string, code: string}[]

---@class sessile.ResealOptions
---@field suite? "aes-256-gcm"|"xchacha20-poly1305" the store's from now on
---@field progress? fun(state: sessile.ResealState) called after each log

---Seals the logs of older epochs again under the newest one, log by log; then removes older epochs.
---@param opts? sessile.ResealOptions
---@return sessile.ResealState? done
---@return string? message
---@return string? code
function Store:reseal(opts) end

---Makes every session and memory of a user unreadable for ever, also in copies of the logs.
---@param user string
---@return integer? number of logs, of sessions and memories, made unreadable
---@return string? message
---@return string? code
function Store:forget(user) end

---@class sessile.BackupOptions
---@field keys? string write the users' secrets to this file instead of the
---   backup: without that file, users who are forgotten later are forgotten in the backup too
---@field update? boolean the files exist: add what is new
---@field progress? fun(state: sessile.MigrateState): boolean? called after each piece; false: stop

---Copies the store into a file, a store in a SQLite database ("sqlite:FILE") that the same secret
---opens, or into the store that the URL names. The file appears when it is complete; until then it
---is FILE.part, and an interrupted backup continues. EEXISTS: the file exists. Others may write to
---the store meanwhile. Restore a backup with sessile.migrate.
---@param path string
---@param opts? sessile.BackupOptions
---@return sessile.MigrateState? done
---@return string? message
---@return string? code
function Store:backup(path, opts) end

---Closes the store and its sessions.
---@return true? ok
---@return string? message
---@return string? code
function Store:close() end

-- ---------------------------------------------------------------- sessions

---@class sessile.Damage
---@field code string "EDAMAGED" or "ETRUNCATED"
---@field message string where, how much is lost, and what to type
---@field lost integer entries; a tombstone replaces each

---An entry of another session.
---@class sessile.Link
---@field id string
---@field agent string
---@field user string
---@field entry string its id
---@field tag? string the tag of its line

---@class sessile.Session
---@field id string
---@field agent string
---@field user string
---@field created integer ms
---@field modified integer ms
---@field torn integer bytes that recovery has set aside
---@field damage? sessile.Damage the session can be read but not written
---@field title string can be assigned; raises if that fails
---@field unsaved integer with an adapter: number of records that only this handle has
---@field origin? sessile.Link of a fork: what it was forked from, and where
---@field parent? sessile.Link of a child: its parent session, and where
local Session = {}

---Appends one message as a commit of its own; no policy runs.
---@param message sessile.Message|sessile.Json
---@return string? id
---@return string? message
---@return string? code
function Session:append(message) end

---@class sessile.ForkOptions: sessile.Inherited, sessile.LoopSettings
---@field id? string of the fork; nil: a new one
---@field agent? string nil: the session's
---@field user? string nil: the session's; "": nobody's
---@field title? string nil: the session's, as it is now
---@field metadata? table members that override the session's
---@field uuid? "v4"|"v7"
---@field model? sessile.Model

---A new session with everything up to an entry, which is its head: ids keep their meaning,
---branches before it are copied, and labels, title, settings and metadata as they are now; a
---suspension is not. nil, or options alone: up to the head.
---@param entry? string an entry id, or a label on exactly one entry
---@param opts? sessile.ForkOptions
---@return sessile.Session? fork
---@return string? message
---@return string? code
function Session:fork(entry, opts) end

---@class sessile.ChildOptions: sessile.ForkOptions
---@field context? boolean true: it starts as a fork at the head; else it is empty

---A session for a sub-agent, with a log of its own, linked to this one both ways. Its default
---policy and model are those of this session.
---@param opts? sessile.ChildOptions
---@return sessile.Session? child
---@return string? message
---@return string? code
function Session:child(opts) end

---@class sessile.Subsession
---@field id string
---@field agent string
---@field user string
---@field entry string this session's entry where it started
---@field time integer ms
---@field state "open"|"merged"|"discarded"
---@field merged? string the newest message merged from it

---The children of this session, oldest first, as its log lists them.
---@return sessile.Subsession[]? rows
---@return string? message
---@return string? code
function Session:subsessions() end

---@class sessile.MergeOptions
---@field summary string|true the text, or true: asked of the model ("child_summary")
---@field role? sessile.Role of the message; "user"
---@field metadata? table beside {kind = "child_summary", child =, agent =}
---@field into? sessile.Session a handle of the parent; default: the one that made the child
---@field model? sessile.Model
---@field prompt? string instructions for the model, instead of the built-in text
---@field max_tokens? integer of a summary; 1500

---Appends the result of this child to its parent, as a message that starts no turn, and records the
---merge, in one commit. If the model fails, nothing is merged: EPOLICY.
---@param opts sessile.MergeOptions
---@return string? id of the message, in the parent
---@return string? message
---@return string? code
function Session:merge(opts) end

---@class sessile.DiscardOptions
---@field reason? string
---@field into? sessile.Session a handle of the parent

---Records in the parent that this child has no result. The child does not change.
---@param opts? sessile.DiscardOptions
---@return true? done
---@return string? message
---@return string? code
function Session:discard(opts) end

---@class sessile.TurnOptions: sessile.Inherited
---@field usage? table what the provider reported: {input =, output =, cache_read =, cache_write =}
---@field model? sessile.Model|string the host's function, or the name of the model that answered
---@field model_name? string
---@field metadata? table
---@field base? string the head that the turn is based on
---@field once? string a name of yours for this turn, 1 to 64 bytes, with base: it is written once
---@field on_conflict? "fail"|"append"|"branch" if the base is no longer the head: fail with
---ECONFLICT, write at the current head, or write a branch and leave the head
---@field event? string an event: fires a trigger that lists it
---@field state? any for a checkpoint that is due; default: checkpoint.state is called

---Appends the messages of one turn as one commit; then policies run. An empty list ends the turn
---of the messages that were appended since the last one: only its turn entry is written.
---@param messages (sessile.Message|sessile.Json)[]
---@param opts? sessile.TurnOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:turn(messages, opts) end

---@class sessile.CompactOptions
---@field policy? sessile.PolicySpec
---@field fallback? sessile.PolicySpec|false runs once if the policy was refused. With the reason
---"manual" only this one runs, not that of the session or of the policy's file
---@field model? sessile.Model
---@field instructions? string
---@field reason? "turn"|"threshold"|"overflow"|"timer"|"event"|"manual" recorded; "manual"
---@field window? integer
---@field reserve? integer
---@field keep_min? integer
---@field timeout_ms? integer|string longest wait of each of its calls for another writer
---@field isolation? "none"|"worker"

---Runs a policy on the context at the head.
---@param opts? sessile.CompactOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:compact(opts) end

---@class sessile.BranchOptions
---@field summary? string|boolean a summary; true: ask the policy or the model
---@field policy? sessile.PolicySpec
---@field model? sessile.Model
---@field model_name? string of the model to ask, if no policy does
---@field instructions? string instructions for the summary
---@field base? string the head that the call is based on; default: the one this handle last read
---@field on_conflict? "fail"|"append" if the head moved: fail (ECONFLICT), or branch anyway
---@field window? integer
---@field reserve? integer
---@field keep_min? integer
---@field timeout_ms? integer|string longest wait of each of its calls for another writer
---@field isolation? "none"|"worker"

---Moves the head to an entry, where the conversation continues; the other branch stays in the log.
---If the summary fails, the branch is made without one: outcome.policy gives the reason.
---@param id string a message, turn, compaction, branch summary, or the header; its id, or
---a label on exactly one entry
---@param opts? sessile.BranchOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:branch(id, opts) end

---@class sessile.Node
---@field id string
---@field parent? string with some types only: the nearest ancestor of these types
---@field type string
---@field role? sessile.Role
---@field speaker? sessile.Role who speaks, to a person: "tool" for results in a message of the user
---@field starts_turn boolean the user asks something here
---@field tokens integer
---@field total_tokens integer of all messages from the header to here
---@field time integer ms: when a message was said, else the entry's
---@field is_path boolean part of the conversation; false: a fact
---@field on_path boolean on the path to the head
---@field is_head boolean
---@field labels string[] in force; "pinned" is the pin
---@field in_context boolean the model sees it unchanged
---@field children sessile.Node[] oldest first
---@field entry sessile.Entry read on first use
---@field timestamp string read with the entry

---@class sessile.Tree
---@field root? sessile.Node nil when the header is not among the types
---@field current string the head's id
---@field nodes table<string, sessile.Node> by id
---@field list sessile.Node[] in the order of the log

---The entries as a tree: all, those of some types, or those with a label.
---@param opts? {types: string[]?, labelled: boolean?}
---@return sessile.Tree? tree
---@return string? message
---@return string? code
function Session:tree(opts) end

---The ids from the header to an entry, or to the head.
---@param id? string
---@return string[]? ids
---@return string? message
---@return string? code
function Session:path(id) end

---The ids of an entry's children, oldest first.
---@param id string
---@return string[]? ids
---@return string? message
---@return string? code
function Session:children(id) end

---The ids of the other children of its parent.
---@param id string
---@return string[]? ids
---@return string? message
---@return string? code
function Session:siblings(id) end

---The newest entry on the paths of both.
---@param a string
---@param b string
---@return string? id
---@return string? message
---@return string? code
function Session:common_ancestor(a, b) end

---The ids of entries without children.
---@return string[]? ids
---@return string? message
---@return string? code
function Session:leaves() end

---@class sessile.ExportOptions
---@field format? "json"|"jsonl"|"md"|"html" "json"
---@field to? string the format of another agent, instead of `format`
---@field context? boolean with to = "openai" or "anthropic": only what the model would get
---@field content? boolean with to = "otel": what was said, always redacted
---@field cwd? string with to = "claude" or "codex": the folder in which that program continues, if
---the session's metadata has no `cwd`; default "/"
---@field redact? boolean|{name: string, pattern: string, fold: boolean?}[] replace what looks
---like a secret, an address, a home; a list: additional rules of your own
---@field write fun(chunk: string): any, string?, string? gets each chunk; nil, message, code: stop
---@field on_step? fun(entries: integer) entries read so far; twice each with redact

---The session as a document, written as it is read: see lua/sessile/export/README.md.
---@param opts sessile.ExportOptions
---@return {format: string, redacted: {name: string, values: integer, places: integer}[]?}? done
---@return string? message
---@return string? code
function Session:export(opts) end

---@class sessile.CheckpointRules
---@field strategy? "manual"|"periodic"|"event"|"threshold" adds a condition if none is given:
---periodic: interval = "5m"; threshold: share = 0.8; event: needs `events`; manual: takes none
---@field messages? integer after this number of new messages since the last one
---@field interval? number|string each time this time has passed since then: 300 (seconds), "5m"
---@field share? number when this share of the window is exceeded
---@field events? string[] when a turn names one of these
---@field keep? integer number kept; 50
---@field state? fun(session: sessile.Session): any returns the state of a checkpoint

---@class sessile.CheckpointOptions
---@field state? any returned by restore
---@field name? string
---@field metadata? table
---@field keep? integer number kept, including this one; the session's `checkpoint.keep`, or 50

---Makes a checkpoint: the head, and a state of the host.
---@param opts? sessile.CheckpointOptions
---@return string? id
---@return string? message
---@return string? code
function Session:checkpoint(opts) end

---@class sessile.Checkpoint
---@field id string
---@field session string the id of its session; with agent and user
---@field agent string
---@field user string
---@field head string
---@field time integer ms
---@field reason "manual"|"periodic"|"event"|"threshold"
---@field messages integer in the context then
---@field tokens integer
---@field state_bytes integer
---@field sound boolean false: it is damaged
---@field name? string
---@field event? string
---@field agent_version? string
---@field metadata? table

---The checkpoints that are kept, newest first.
---@param opts? {name: string?, named: boolean?, since: integer|string|nil,
---until: integer|string|nil, reason: string?} since, until: as of a list
---@return sessile.Checkpoint[]? list
---@return string? message
---@return string? code
function Session:checkpoints(opts) end

---@class sessile.Restored
---@field checkpoint string
---@field head string
---@field state any
---@field json? string the stored state
---@field warnings string[] what has changed since

---Verifies a checkpoint and moves the head to it.
---@param wanted string|sessile.Checkpoint its id, its row, or the newest of that name
---@param opts? {force: boolean?} also if another version of the agent made it
---@return sessile.Restored? restored
---@return string? message
---@return string? code
function Session:restore(wanted, opts) end

---Deletes a checkpoint.
---@param wanted string|sessile.Checkpoint its id, its row, or the newest of that name
---@return true? ok
---@return string? message
---@return string? code
function Session:delete_checkpoint(wanted) end

---@class sessile.PendingRun
---@field id string the entry of the run
---@field time integer ms
---@field policy string the policy that asks
---@field refused boolean it was answered, but its policy was refused: answer(nil) tries again
---@field request sessile.ModelRequest

---The pending runs, oldest first.
---@return sessile.PendingRun[]? list
---@return string? message
---@return string? code
function Session:pending_runs() end

---@class sessile.AnswerOptions
---@field pending_run? string the run; default: the newest
---@field failed? string there is no answer, and why
---@field fallback? sessile.PolicySpec|false as in CompactOptions
---@field policy? sessile.PolicySpec default: the session's, else that of the run
---@field model? sessile.Model for questions without an answer yet
---@field timeout_ms? integer|string

---Continues a pending run, in this process or another one.
---@param text? string the model's answer; nil: the model is asked again
---@param opts? sessile.AnswerOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:answer(text, opts) end

---As compact, but nothing is written.
---@param opts? sessile.CompactOptions
---@return sessile.Plan? plan
---@return string? message
---@return string? code
function Session:plan(opts) end

---@class sessile.Compaction
---@field kind "compaction"|"refusal"
---@field id string
---@field time integer ms
---@field policy? string names and versions of the policies whose edits it has; or the one at fault
---@field reason? string "turn", "threshold", "manual", …
---@field instructions? string
---@field summary? string
---@field policies? {name: string, version: integer, hash: string?, options: table}[]
---@field tokens? {before: integer, after: integer}
---@field uncompacts? string the compaction that it undoes
---@field first_kept? string the first message that stayed as it was, after the first that left
---@field kept? integer messages of its list that it kept
---@field lost? integer
---@field covered? integer
---@field replaced? integer
---@field undone? integer messages removed because the undone compaction wrote them
---@field written? integer messages that it wrote
---@field restored? integer messages that it restored
---@field in_force? "yes"|"partly"|"no" whether its effect still holds
---@field hook? string refusal
---@field message? string refusal: why
---@field law? integer refusal
---@field law_name? string refusal
---@field entry? string refusal: the message that it concerns
---@field repeated? integer refusal: how often this handle has seen it again

---The compactions with a context on the path to the head, and the refusals between them.
---@return sessile.Compaction[]? list oldest first
---@return string? message
---@return string? code
function Session:log() end

---@class sessile.WhyStep
---@field kind string "said", "written", "left", "restored"; "elsewhere" (on another branch),
---"no_message"; "orphan" (not shown), "unanswered", "moved" (shown behind its call)
---@field key string the message in question, or one that replaced it
---@field at string the entry where it happened
---@field time integer ms
---@field text string a sentence
---@field role? sessile.Role
---@field type? string no_message: the entry's type
---@field disposition? "lost"|"covered"|"replaced"|"undone" left
---@field by? string left: the message that replaces it; orphan, moved: the message with the call
---@field stands_for? string[] written
---@field recalled? {memory: "user"|"agent", id: string}[] said: entries of memories that it quotes
---@field compaction? sessile.Compaction written, left, restored

---@class sessile.Explanation
---@field key string
---@field in_context boolean the model sees this message
---@field shown? string the message that the model sees instead
---@field steps sessile.WhyStep[] oldest first
---@field verdict string a sentence
---@field text string all sentences, one on each line; tostring() gives the same

---Why a message is in the context at the head, or not.
---@param name string an entry id, a label, or the name of a message that a compaction wrote
---@return sessile.Explanation? explanation
---@return string? message
---@return string? code
function Session:why(name) end

---@class sessile.Uncompacted
---@field compaction? string the entry written; nil: a dry run
---@field undone string the undone compaction
---@field restored string[] messages that returned
---@field removed string[] messages that left
---@field tokens {before: integer, after: integer}
---@field cannot_fit? integer tokens by which the context exceeds window less reserve

---Undoes a compaction on the path; by default the newest one in force that is not itself an undo.
---Undoing an undo redoes the first compaction.
---@param id? string
---@param opts? {dry_run: boolean?}
---@return sessile.Uncompacted? done
---@return string? message
---@return string? code
function Session:uncompact(id, opts) end

---@class sessile.MessagesOptions
---@field from? string the first entry
---@field at? string the end of the path; nil: the head
---@field limit? integer maximum, counted from the first; 0: none
---@field last? integer only this number of the newest; 0: all
---@field role? sessile.Role

---Every message from the root to the head, compacted or not.
---@param opts? sessile.MessagesOptions
---@return sessile.Message[]? list
---@return string? message
---@return string? code
function Session:messages(opts) end

---@class sessile.ContextInfo
---@field tokens integer
---@field low integer
---@field high integer
---@field source "usage"|"exact"|"host"|"fitted"|"estimate" of several: the least exact
---@field head string
---@field dropped integer
---@field orphans integer
---@field unanswered integer
---@field lost integer entries lost by damage
---@field room? integer with a window: tokens left in it, less the reserve; negative: too many

---@class sessile.ContextOptions
---@field at? string
---@field model? string
---@field tools? table[]
---@field system? string
---@field window? integer
---@field reserve? integer

---The messages that the model would get. model, tools, system: as for tokens(). window, reserve:
---for info.room, instead of those of the session.
---@param opts? sessile.ContextOptions
---@return sessile.Message[]? list
---@return sessile.ContextInfo|string info
---@return string? code
function Session:context(opts) end

---One entry.
---@param id string an entry id, or a label on exactly one entry
---@return sessile.Entry? entry
---@return string? message
---@return string? code
function Session:entry(id) end

---@class sessile.EntriesOptions
---@field types? string[] only entries of these types, as "custom"; an empty list: all types
---@field after? string only what came after this entry: an id, or a label on exactly one entry
---@field before? string only what came before this entry
---@field limit? integer the largest number of entries; 0: all
---@field reverse? boolean the newest first

---The entries in the order of the log, or backwards, for a for loop; raises if one cannot be read.
---Only what is returned is read, so what came since an entry costs the same in a long log as in a
---short one. EINVALID: the log has no such entry, or there is no such type.
---@param opts? sessile.EntriesOptions
---@return (fun(): sessile.Entry?)? iterator
---@return string? message
---@return string? code
function Session:entries(opts) end

---@return string? id
---@return string? message
---@return string? code
function Session:head() end

---Takes the newest messages off the conversation, as off a stack, in one step; the log remains, and
---branch() goes back. ECONFLICT: somebody has written since `base`.
---@param n? integer how many; 1
---@param opts? {base: string?} the head that the caller knows; nil: the one this handle last showed
---@return sessile.Message[]? messages that were taken off, oldest first; fewer if there were fewer
---@return string? message
---@return string? code
function Session:pop(n, opts) end

---Moves the head to the root; the log remains.
---@return true? ok
---@return string? message
---@return string? code
function Session:clear() end

---@param title string
---@return true? ok
---@return string? message
---@return string? code
function Session:set_title(title) end

---Sets how long its calls wait for another writer.
---@param timeout_ms integer|string ms, or "5s"; -1: for ever; 0: the lock is tried once
---@return true? ok
---@return string? message
---@return string? code
function Session:set_timeout(timeout_ms) end

---Syncs everything that this handle wrote or read. The next write records that it is safe. Needed
---with durability "none", and to rely on a write that failed with EIO and was found later: a
---PostgreSQL primary can show what its standbys do not have yet. EBUSY: they still do not have it.
---@return true? ok
---@return string? message
---@return string? code
function Session:sync() end

---Waits until others have written entries after `after`, or after everything that this handle has
---read. Reading calls then return them. Nothing else runs in this Lua state meanwhile. A store that
---is a table of functions: EUNSUPPORTED.
---@param opts? {after: string?, timeout_ms: integer|string|nil} timeout_ms nil or -1: for ever
---@return boolean? changed false: timeout
---@return string id_or_message the newest entry: the next `after`
---@return string? code
function Session:watch(opts) end

---@class sessile.SessionMemoryOptions
---@field consent? string the user consents, in these words: the memory is made if it is not there
---@field language? string of a new memory's words: "english", "german", …
---@field timeout_ms? integer|string

---The long-term memories of a session's user and of its agent, read as one. Each row says in
---`memory` which it is of. Reading makes none.
---@param given? sessile.SessionMemoryOptions
---@return sessile.Memories?
---@return string? message
---@return string? code
function Session:memory(given) end

---How to recall, in the configuration and in a call.
---@class sessile.RecallSettings
---@field budget? integer tokens of the message: 1000
---@field share? number of the window less the reserve: 0.05
---@field min? number the least share of the question's words that an entry meets: 0.15
---@field near? number the least cosine of what is found by its vector alone; nil: four deviations
---above the mean
---@field limit? integer entries: 8
---@field trust? "system"|"user"|"agent"|"tool" the least, unless an entry was approved: "agent"
---@field recency? number how much a new entry gains: 0.1
---@field importance? number how much an important entry gains: 0.1
---@field start? boolean pinned entries and procedures first in a context without recall: true

---@class sessile.RecallOptions: sessile.RecallSettings
---@field question? string nil: the newest message of the user
---@field vector? number[]|false the question's embedding; nil: of who embeds; false: by words alone
---@field model? string whose it is
---@field weight? number of vectors, 0 to 1: 0.3
---@field entries? sessile.MemoryRow[] these, in this order, instead of what is found
---@field dry_run? boolean write nothing, and return what was found
---@field policy? sessile.PolicySpec whose `recall` hook chooses; else memory.policy

---@class sessile.RecallOutcome
---@field id? string the message; nil: nothing was written
---@field recalled integer entries in it
---@field found integer entries that were found or given
---@field not_fitting? integer left out: the message would have had too many tokens
---@field not_allowed? integer left out: not live any more, not trusted, or in the context already
---@field denied? integer memories left out: their user does not consent
---@field tokens? integer of the message
---@field entries? sessile.MemoryRow[] what was found, with dry_run

---Quotes what its memories have about a question in the context, behind the newest message. Nothing
---found: nothing is written. ECONFLICT: the newest message has calls whose results are to come.
---@param opts? sessile.RecallOptions
---@return sessile.RecallOutcome?
---@return string? message
---@return string? code
function Session:recall(opts) end

---@class sessile.RememberOptions
---@field policy? sessile.PolicySpec else memory.policy
---@field model? sessile.Model else the session's
---@field dry? boolean judge everything, write nothing, in one run
---@field share? boolean entries may go to what the agent keeps for all
---@field timeout_ms? integer
---@field isolation? "none"|"worker"

---@class sessile.MemoryChange
---@field do "write"|"delete"|"confirm"
---@field memory "user"|"agent"
---@field id? string of an entry that was written
---@field ids? string[] that were deleted or confirmed
---@field key? string
---@field value? string
---@field kind? "fact"|"episode"|"reflection"|"procedure"
---@field source? "user"|"agent"|"tool"|"system"
---@field lowered? boolean it was trusted less than the policy's sources would say
---@field replaces? string[]
---@field contradicts? string[] entries of a higher source: it waits for a person
---@field state "live"|"pending"|"not admitted"|"stale"
---@field why? string
---@field policy string

---@class sessile.MemoryOutcome
---@field verdict "none"|"unchanged"|"applied"|"refused"|"stale"
---@field policy? string refused: whose hook or proposal it was
---@field hook? string
---@field law integer refused: the law of memory that was broken; 0: an error
---@field message? string
---@field refusal? string the entry that records the refusal
---@field heard integer messages that the policy was shown
---@field left integer messages, or entries of a tidy, for the next time
---@field written integer entries, pending ones among them
---@field pending integer
---@field lowered integer
---@field ended integer entries that were replaced or deleted
---@field confirmed integer
---@field not_admitted integer
---@field stale integer changes that were left out because others wrote meanwhile
---@field changes sessile.MemoryChange[]
---@field log? string

---Remembers what was said since the session was last heard: the policy proposes entries, the engine
---checks them against the laws of memory, and writes them together with how far it was heard.
---EDENIED: the user has not consented; EINVALID: there is no policy.
---@param opts? sessile.RememberOptions
---@return sessile.MemoryOutcome?
---@return string? message
---@return string? code
function Session:remember(opts) end

---The number of turns, single appends and compactions on the path to the head.
---@return integer? count
---@return string? message
---@return string? code
function Session:event_count() end

---Tokens of the context: the provider's report plus a count of what follows it. After a compaction,
---or without a report, everything is counted. model: count for this model. tools and system (a
---prompt outside the messages) are added unless the report includes them.
---@param opts? {model: string?, tools: table[]?, system: string?, at: string?}
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Session:tokens(opts) end

---@class sessile.Usage
---@field input integer
---@field output integer
---@field cache_read integer
---@field cache_write integer

---The reports of one day, model or agent.
---@class sessile.UsageGroup: sessile.Usage
---@field key string "2026-11-21" (UTC); the model's or agent's name ("": unknown)
---@field model string by "model" and "day_and_model": the model ("": unknown); else ""
---@field cost number US dollars that reports say themselves (`cost` of a usage)
---@field uncosted sessile.Usage the part of the tokens whose reports say no cost
---@field reports integer turns and messages that reported it
---@field first integer time of the first of them, ms
---@field last integer

---The usage that providers reported, over the whole log and all branches. For the size of the
---context, use tokens(). With `by`, a list of groups that add up to it: days oldest first, others
---largest first.
---@param opts? {by: "day"|"model"|"agent"|"day_and_model"|nil}
---@return sessile.Usage|sessile.UsageGroup[]|nil usage
---@return string? message
---@return string? code
function Session:usage(opts) end

---A host's own entry, which never enters the context.
---@param data table
---@param source? "user"|"agent"|"system"|"tool"|"host"
---@return string? id
---@return string? message
---@return string? code
function Session:custom(data, source) end

---Either a message or a custom entry
---@class sessile.WriteEntry
---@field message? sessile.Message|sessile.Json
---@field custom? table|sessile.Json what custom() takes
---@field source? "user"|"agent"|"system"|"tool"|"host" of a custom entry

---Writes messages and custom entries in one commit: all of them are in the log, or none. No policy
---runs, and they are no turn. A custom entry is about the message before it, or about the head.
---ECONFLICT: `base` is not the head any more.
---@param entries sessile.WriteEntry[]
---@param opts? {base: string?} the head that the caller knows; nil: as for append()
---@return string[]? ids
---@return string? message
---@return string? code
function Session:write(entries, opts) end

---Puts a label on an entry: UTF-8, 1 to 200 bytes. An entry may have several.
---@param id string
---@param name string
---@return true? ok
---@return string? message
---@return string? code
function Session:label(id, name) end

---Removes a label; without a name all labels of the entry, but not a pin, nor what a screen put
---("screen:RULE"): that needs the host's own store, or `manage_access`
---@param id string
---@param name? string
---@return true? ok
---@return string? message
---@return string? code
function Session:unlabel(id, name) end

---The status: "active", "suspended", "archived", "expired" or "deleted"; times in ms.
---@return {status: string, ttl: integer?, expires: integer?, deleted: integer?}? life
---@return string? message
---@return string? code
function Session:life() end

---Sets how long after its newest entry it expires: seconds, or "30d"; nil: never.
---@param span? number|string
---@return true? ok
---@return string? message
---@return string? code
function Session:set_ttl(span) end

---Archives the session, or, with false, makes it active. An archived session can be used.
---@param on? boolean
---@return true? ok
---@return string? message
---@return string? code
function Session:archive(on) end

---@class sessile.Label
---@field id string the entry
---@field name string "pinned" is the pin
---@field time integer ms
---@field fact string the entry that records it

---The labels in force, by entry.
---@return sessile.Label[]? labels
---@return string? message
---@return string? code
function Session:labels() end

---Keeps a message in the context, unedited by policies.
---@param id string
---@return true? ok
---@return string? message
---@return string? code
function Session:pin(id) end

---@param id string
---@return true? ok
---@return string? message
---@return string? code
function Session:unpin(id) end

---Returns the settings (for example the model or a thinking level). With a table, sets its members
---and keeps the others; sessile.null removes one.
---@param object? table
---@return table|true|nil settings
---@return string? message
---@return string? code
function Session:settings(object) end

---Returns the metadata; with a table, sets members like settings.
---@param object? table
---@return table|true|nil metadata
---@return string? message
---@return string? code
function Session:metadata(object) end

---Suspends the session: adding to the conversation fails with ESUSPENDED, in any process, until it
---is resumed or cancelled. The outcome's status is "paused".
---@param opts? {reason: string?, state: any}
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:suspend(opts) end

---@class sessile.Suspension
---@field id string the entry
---@field time integer ms
---@field reason string
---@field state any as it was given

---The suspension; nil: it is not suspended.
---@return sessile.Suspension? suspension
---@return string? message
---@return string? code
function Session:suspended() end

---Ends the suspension with messages: one, a list, or none.
---@param messages? sessile.Message|sessile.Json|(sessile.Message|sessile.Json)[]
---@return string[]? ids
---@return string? message
---@return string? code
function Session:resume_with(messages) end

---Ends the suspension and every pending run, and appends nothing.
---@param reason? string
---@return true? ok
---@return string? message
---@return string? code
function Session:cancel(reason) end

---@return true? ok
---@return string? message
---@return string? code
function Session:close() end

-- ---------------------------------------------------------------- sending and agents

---@class sessile.LoopContext
---@field session? sessile.Session nil without one
---@field reason "send"|"resume"|"policy" why the model is asked
---@field step integer 0 before the first request
---@field cancelled fun(): boolean
---@field on_text? fun(text: string) for a model: reports text as it arrives, as events "text"
---@field on_reasoning? fun(text: string) the same for its reasoning, as events "reasoning"
---@field call? string of a tool: the call's id
---@field tool? string its name
---@field attempt? integer how often this call was started, including this time

---@class sessile.Tool
---@field run fun(args: table, ctx: sessile.LoopContext): any, any text, content blocks, any
---JSON-able value, or sessile.pause{…}; nil and a reason, or an error raised, tell the model
---that it failed
---@field description? string
---@field parameters? table JSON schema; given to the model, not checked
---@field repeatable? boolean may run again if a crash left open whether it ran

---Sees the first request and may change or replace it, refuse (nil, reason) or pause.
---@alias sessile.Before fun(request: sessile.ModelRequest, ctx: sessile.LoopContext): any, any
---Sees the last reply before it is stored and may change or replace it, refuse or pause.
---@alias sessile.After fun(reply: sessile.Message, ctx: sessile.LoopContext): any, any
---Computes the next state from the last one (nil at first) and the events since.
---@alias sessile.Reducer fun(state: any, events: sessile.Event[]): any

---@class sessile.Event
---@field type "start"|"interrupted"|"message"|"recall"|"context"|"model"|"reasoning"|"text"|
---"overflow"|"compact"|"tool_start"|"tool_end"|"turn"|"done"|"paused"|"error"
---@field step integer
---@field call? {id: string, name: string, arguments: string|table}
---@field message? sessile.Message|string of overflow and error: what was said
---@field text? string of text and reasoning: a piece of it
---@field [string] any

---@class sessile.SendOptions: sessile.Inherited, sessile.LoopSettings
---@field model? sessile.Model
---@field model_name? string recorded with its messages
---@field event? string what happened: fires a trigger, or a checkpoint, that lists it
---@field metadata? table of the turn
---@field on_conflict? "fail"|"append"

---Sends a message through hooks, model, tools, turn and policy; nil continues an interrupted send.
---nil, message, code if the send could not start.
---@param message? string|sessile.Message|sessile.Message[]
---@param opts? sessile.SendOptions
---@return sessile.SendOutcome? outcome
---@return string? message
---@return string? code
function Session:send(message, opts) end

---@class sessile.InteractionState
---@field messages sessile.Message[] the context
---@field head string
---@field tokens integer
---@field value any the last result of the reducer

---The state of the session's sends.
---@return sessile.InteractionState? state
---@return string? message
---@return string? code
function Session:state() end

---Writes what a send could not write. true: written; nil alone: there was nothing.
---@param opts? {on_conflict: "fail"|"append"|nil}
---@return true? written
---@return string? message
---@return string? code
function Session:save(opts) end

---@class sessile.SendOutcome: sessile.Outcome
---@field status "completed"|"paused"|"failed"
---@field kind "send"
---@field ids string[] of every message that was written
---@field steps integer requests to the model
---@field recalled? sessile.RecallOutcome what memories have about the question, if any was quoted
---@field reply? sessile.Message completed: the model's last message
---@field text? string its text
---@field usage? table<string, integer> summed over the requests
---@field error? string failed: why
---@field code? string failed: as "ECONFLICT", "ELIMIT" (max_steps), "ECANCELLED", or the model's
---@field unsaved? sessile.Message[] failed: what could not be written; session:save writes it
---@field reason? string paused: until s:resume_with or s:cancel
---@field suspension? string paused: the entry of the suspension
---@field state? any paused
---@field messages? sessile.Message[] without a session: new messages

---@class sessile.AgentOptions: sessile.SendOptions
---@field name? string
---@field session? sessile.Session|string a session, or an id in `store`, created if missing
---@field store? sessile.Store

---@class sessile.Agent
---@field name? string
---@field session? sessile.Session
---@field store? sessile.Store
local Agent = {}

---@class sessile.RunOptions: sessile.SendOptions
---@field session? sessile.Session|string
---@field store? sessile.Store
---@field messages? sessile.Message[] without a session: earlier messages

---Runs with a message; nil continues an interrupted run. Options override the agent's.
---@param message? string|sessile.Message|sessile.Message[]
---@param opts? sessile.RunOptions
---@return sessile.SendOutcome? outcome
---@return string? message
---@return string? code
function Agent:run(message, opts) end

---Ends its runs: no further request is sent, no further tool started.
---@return true
function Agent:cancel() end

-- ---------------------------------------------------------------- outcomes

---@class sessile.Removal
---@field key string
---@field disposition "lost"|"covered"|"replaced"
---@field role sessile.Role
---@field tokens integer
---@field by? string

---@class sessile.Verdict
---@field applied boolean
---@field verdict "applied"|"unchanged"|"refused"|"too_little"|"stale"|"pending"
---@field refused? string why
---@field message? string
---@field law? integer
---@field name? string
---@field hook? string
---@field dropped integer
---@field removals sessile.Removal[]
---@field too_little boolean
---@field reason? string why the policies last compacted: "event", "overflow", "threshold",
---"timer"; "turn": nothing asked for it; else the given reason
---@field fallback? sessile.FallbackVerdict the result of the fallback, if the policy was refused

---@class sessile.FallbackVerdict: sessile.Verdict
---@field refusal? string the entry of its own refusal
---@field repeated? integer how often the same refusal was repeated

---@class sessile.Outcome
---@field status "completed"|"paused"
---@field pending_run? string paused: the entry to answer
---@field checkpoint? string that the turn made automatically
---@field checkpoint_failed? string why a checkpoint that was due could not be made
---@field suspension? string suspended by the host: the entry of the suspension
---@field kind "turn"|"compact"|"plan"|"answer"|"branch"|"suspend"
---@field ids string[] of the turn's messages
---@field turn? string the turn's own entry
---@field again? true an earlier turn with the same `once`: nothing was written now
---@field head string the head after the run; of a turn beside the head, its last entry
---@field from? string branch: the head that was left
---@field branch_summary? string branch: the entry with the summary
---@field saved? true nil: the host's adapter chose not to keep it
---@field context sessile.Message[] fetched when first read
---@field tokens {before: integer, after: integer} of the context. Without a policy it is counted
---  when it is first read, which folds the whole context: 10 to 25 ms at 4,000 messages
---@field policy? sessile.Verdict nil without a policy
---@field removals sessile.Removal[] all messages that left the context
---@field cannot_fit? integer tokens by which the context exceeds window less reserve
---@field compaction? string
---@field time? integer ms, when the compaction was written
---@field first_kept? string the first message that stayed as it was, after the first that left
---@field repeated? integer how often the same refusal was repeated since it was recorded
---@field refusal? string
---@field summary? string
---@field engine_us integer
---@field policy_us integer
---@field log string[] messages of ctx.log: the host's, then the files'

---@class sessile.PlanRow
---@field mark "-"|"+"|" "
---@field key? string
---@field role string
---@field tokens integer
---@field disposition? string
---@field by? string
---@field text string

---@class sessile.Plan
---@field before sessile.Message[]
---@field after sessile.Message[]
---@field tokens {before: integer, after: integer}
---@field policy? sessile.Verdict
---@field removals sessile.Removal[]
---@field first_kept? string
---@field cannot_fit? integer
---@field summary? string
---@field engine_us integer
---@field policy_us integer
---@field log string[]
local Plan = {}

---Before and after, one line for each message, and the same as rows.
---@return string text
---@return sessile.PlanRow[] rows
function Plan:diff() end

-- ---------------------------------------------------------------- runs

---@class sessile.Need
---@field kind "model"|"hook"|"state"
---@field policy string
---@field step integer
---@field reason string
---@field instructions? string
---@field request? sessile.ModelRequest model
---@field hook? string hook
---@field state? sessile.State hook
---@field previous? sessile.Message[] merge
---@field abandoned? sessile.Message[] branch_summary
---@field options? table hook
---@field now? integer hook
---@field fallback? boolean true: the fallback asks

---@class sessile.Run
local Run = {}

---Continues: returns true when it is done, a need, or nil, message, code.
---@return sessile.Need|true|nil need
---@return string? message
---@return string? code
function Run:step() end

---Answers with the model's text, or with what the hook returned.
---@param value any
---@return true? ok
---@return string? message
---@return string? code
function Run:reply(value) end

---Answers with a failure.
---@param reason any
---@return true? ok
---@return string? message
---@return string? code
function Run:fail(reason) end

---Leaves it as a pending run, to be answered later, here or in another process. Returns its id.
---@return string? pending_run
---@return string? message
---@return string? code
function Run:defer() end

---Returns what turn, compact and plan return.
---@param need sessile.Need
---@return true? ok
---@return string? message
---@return string? code
function Run:answer(need) end

---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Run:outcome() end

---Before it is done: the turn is kept, the proposal is dropped.
---@return true ok
function Run:close() end

return sessile
