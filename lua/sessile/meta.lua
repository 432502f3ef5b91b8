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
---@field later table what a model function returns when the answer comes later: see Session:answer
local sessile = {}

---@class sessile.EncodingOptions
---@field pattern? string of a .tiktoken file: a regular expression, or the name of an encoding that
---  has the same
---@field folders? string|string[] where NAME.bpe is looked for before the usual places

---An encoding, which counts the tokens of a text exactly as the models do that use it. Special
---tokens that stand in a text ("<|endoftext|>") are ordinary text.
---@class sessile.Encoding
---@field name string
local Encoding = {}

---How many tokens a text is; nil, message, code
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

---The text that ids stand for; nil, message, "EINVALID" for an id that is no token
---@param ids integer[]
---@return string?
---@return string? message
---@return string? code
function Encoding:decode(ids) end

---Frees it at once.
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

---Defaults: `sessile config`.
---@class sessile.Limits
---@field message? integer bytes of one message
---@field session? integer bytes of one log
---@field depth? integer nesting of JSON
---@field id? integer bytes of an id, agent or user
---@field title? integer bytes of a title
---@field policy_gas? integer instructions of one pipeline
---@field policy_ms? integer its time in ms, waiting aside
---@field policy_memory? integer bytes of a policy's Lua state
---@field policy_result? integer bytes a proposal may write

---@class sessile.OpenOptions
---@field agent? string default agent of sessions; "main"
---@field key? sessile.Key|string|false false: a plain store; nil: $SESSILE_KEY or a key file, and
---  plain over an adapter, which takes 32 bytes as well
---@field suite? "aes-256-gcm"|"xchacha20-poly1305" of a new store
---@field durability? "sync"|"none"
---@field timeout_ms? integer longest wait for another writer; 5000; -1: for ever
---@field network? boolean write on a network file system too: one machine alone does
---@field window? integer the model's window in tokens; 0: unlimited
---@field reserve? integer tokens to keep free in the window
---@field ttl? number|string|table<string, number|string> of new sessions: seconds, "30d"; or
---one for each agent
---@field policy? sessile.PolicySpec|false
---@field fallback? sessile.PolicySpec|false what runs instead, once, when the policy was refused
---@field trigger? sessile.Trigger|false when to compact without asking the policy whether
---@field model? sessile.Model
---@field tools? table<string, sessile.Tool|function> of its sessions' loops; and so on:
---@field before? sessile.Before|sessile.Before[]
---@field after? sessile.After|sessile.After[]
---@field reducer? sessile.Reducer
---@field max_steps? integer
---@field on_event? fun(event: sessile.Event)
---@field parallel? boolean|fun(tasks: function[])
---@field commit? "step"|"turn"
---@field model_name? string whose tokens are counted; else the model that a session's turns or
---settings name last
---@field encoding? string "o200k_base", "cl100k_base", or a path of a .tiktoken or tokenizer.json;
---else the model's, when it is published
---@field encoding_path? string|string[] folders that encodings are looked up in
---@field count? fun(text: string): integer? the host's counter, used where no encoding is known;
---nil: it cannot say. It may not yield, nor use sessile
---@field policy_path? string|string[] folders that policies are looked up in
---@field isolation? "none"|"worker" where policy files run: here, or in a process of their own
---@field worker? string the program of isolated policies; else the one that was installed
---@field checkpoint? sessile.CheckpointRules|false when turns make checkpoints by themselves
---@field agent_info? {version: string?, config: string?, tools: string[]?} kept in checkpoints
---@field limits? sessile.Limits
---@field store? string where, when the url is nil
---@field user? string of sessions for which none is named
---@field agents? table<string, sessile.AgentOptions> what differs for the sessions of an agent

---Between the options of a session and those of its store.
---@class sessile.AgentOptions
---@field policy? sessile.PolicySpec|false
---@field fallback? sessile.PolicySpec|false
---@field trigger? sessile.Trigger|false
---@field checkpoint? sessile.CheckpointRules|false
---@field window? integer
---@field reserve? integer
---@field model? sessile.Model
---@field ttl? number|string|false

---What an adapter's functions are told beside the id.
---@class sessile.AdapterContext
---@field session {id: string, agent: string, user: string}
---@field reason string what is being done: "create", "append", "turn", "save" …
---@field deadline? integer ms since 1970; nil: no hurry

---@alias sessile.OuterId string|{session_id: string, user_id: string}

---A store that the host keeps. All of it may yield.
---@class sessile.Adapter
---@field load fun(id: sessile.OuterId, ctx: sessile.AdapterContext): string[]?, any
---@field save fun(id: sessile.OuterId, new: {count: integer, records: string[]}, was: integer,
---  ctx: sessile.AdapterContext): boolean?, any
---@field delete? fun(id: sessile.OuterId, ctx: sessile.AdapterContext): boolean?, any
---@field list? fun(ctx: sessile.AdapterContext): table?, any

---Opens the store at a path, "file:PATH", "sqlite:PATH", "postgres://…" or "ram:"; nil: what
---opts.store says, or the default; or one of yours.
---@param url? string|sessile.Adapter
---@param opts? sessile.OpenOptions
---@return sessile.Store? store
---@return string? message
---@return string? code
function sessile.open(url, opts) end

---What the configuration files say: its own fields are options of sessile.open; the rest, which
---pairs() does not see, is what only the command line uses.
---@class sessile.Config: sessile.OpenOptions
---@field retention? integer ms that a softly deleted session is kept
---@field models table<string, table> by their names
---@field files {path: string, kind: "own"|"project"|"named", trusted: boolean}[] that were read
---@field for_agent fun(self: sessile.Config, agent: string?): sessile.AgentConfig
---@field origin fun(self: sessile.Config, key: string): {from: string, file: string?,
---line: integer?, name: string?} of a key, as "limits.message" or "agents.coder.policy"
---@field value fun(self: sessile.Config, key: string): any as it was read; nil: the default

---@class sessile.AgentConfig: sessile.AgentOptions
---@field model? function|table as sessile.model takes it
---@field model_name? string

---The configuration: $XDG_CONFIG_HOME/sessile/config.lua and ./sessile.lua, or $SESSILE_CONFIG,
---or the file that is named. sessile.open(nil, sessile.config()) opens what the command line does.
---Nothing else in the library reads them. EUSAGE: a file that was named is not there; EDENIED: one
---is not to be trusted, and why; EINVALID: what is wrong in it, and on which line.
---@param path? string
---@return sessile.Config? config
---@return string? message
---@return string? code
---@return string? step what to do
function sessile.config(path) end

---@class sessile.KeysInitOptions
---@field key? sessile.Key|false
---@field suite? "aes-256-gcm"|"xchacha20-poly1305"

---Makes the keyring of a store, and your key file when there is none; opens nothing.
---EEXISTS: there is one.
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
---@field timeout_ms? integer
---@field network? boolean

---@class sessile.MigrateOptions
---@field change? boolean sealed to plain, or plain to sealed, is meant
---@field into? boolean `to` may have sessions of its own; what is there is never overwritten
---@field fresh? boolean EEXISTS also where the sessions in `to` are an earlier run's
---@field replace? boolean a session there that differs is replaced; its log is kept aside
---@field mirror? boolean `to` is nothing but a copy: secrets of users who were forgotten in `from`
---   are removed there
---@field whole? boolean `to` is a file or folder that appears when all is in it
---@field parts? ("sessions"|"keyring"|"users")[] what is copied as it stands; nil: all
---@field progress? fun(state: sessile.MigrateState): boolean? called after each piece; false: stop

---@class sessile.MigrateState
---@field stage "looking"|"copying"|"verifying"|"done"
---@field as_it_stands boolean bytes were copied; false: sealed again under the keys of `to`
---@field unopened boolean without a key: bytes were compared, and no seal was opened
---@field moment boolean all sessions are as they were at one moment
---@field sessions integer of this stage
---@field done integer of which dealt with
---@field bytes integer
---@field bytes_done integer
---@field copied integer that were not there
---@field continued integer of which the beginning was there
---@field kept integer that were there
---@field replaced integer
---@field conflicts integer where another session of that name is there: left alone
---@field forgotten integer of users who were forgotten: nothing opens them
---@field gone integer deleted meanwhile
---@field failed integer not copied
---@field damaged integer damaged in `from`; as it stands, copied with the damage
---@field verified integer read back, or compared, and equal
---@field unfinished integer bytes of writes that were never finished: not copied
---@field users integer users' secrets copied
---@field users_removed integer users' secrets removed (mirror)
---@field failures? {log: string, message: string, code: string}[] at the end

---Copies every session of one store into another and reads it back. `from` is only read, and
---others may write to it. Where `to` is empty the bytes are copied as they stand, and no key is
---needed; where it has a keyring, or a key is given for it, everything is sealed again.
---Interrupted anywhere, and run again, it goes on.
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

---A value that is written as this JSON text, token for token.
---@param text string
---@return sessile.Json
function sessile.json(text) end

---@class sessile.Json
---@field json string

---A value as JSON text, by the rules of messages: sorted keys, {} is an object.
---@param value any
---@return string? text
---@return string? message
---@return string? code
function sessile.encode(value) end

---The value of a JSON text: plain tables, sessile.null for null. EINVALID: it is not JSON.
---@param text string
---@return any value
---@return string? message
---@return string? code
function sessile.decode(text) end

---A program that is asked: the request as JSON on its standard input; on its standard output a
---text, or a JSON object with content or tool_calls, or {"error": {"message", "code"}}.
---@class sessile.ModelCommand
---@field command string[] the program first; no shell is between
---@field timeout? number|string without output; 120 seconds; ten times that in all
---@field name? string what is recorded as the model
---@field window? integer its tokens; recorded nowhere by the library

---An endpoint that speaks as OpenAI's chat completions do.
---@class sessile.ModelEndpoint
---@field endpoint string "https://…/v1": /chat/completions is added where it is not there
---@field name string which of its models
---@field key? sessile.Key|false sent as a bearer token
---@field headers? table<string, string|sessile.Key>
---@field max_tokens? integer of an answer, where the request says nothing
---@field timeout? number|string without a byte; 120 seconds; ten times that in all
---@field insecure? boolean a key may go over http to another machine
---@field ca? string a file of authorities in place of the system's
---@field wait? fun(seconds: number) called in place of blocking; may yield
---@field window? integer

---@class sessile.ModelFile
---@field lua string a file that returns a function
---@field name? string
---@field window? integer

---@alias sessile.ModelSpec sessile.Model|sessile.ModelCommand|sessile.ModelEndpoint|
---sessile.ModelFile|string

---A function that asks a model, for `model=` everywhere. It gets a request and a function for
---the text as it comes, or a loop's context; it answers with a message (or a text), or nil,
---message, code: EOVERFLOW too long a request, EDENIED the key, ELIMIT rate or quota, ECANCELLED,
---EIO everything that may be tried again. nil, message, code when it cannot be asked here:
---EUNSUPPORTED a package is missing, ENOTFOUND.
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
---@field messages? sessile.Message[] what was said; without `message` the last is the new one
---@field message? string|sessile.Message
---@field session? sessile.Session makes it session:send

---A message to a model, with tools and hooks, and nothing kept but the outcome's messages.
---@param opts sessile.StatelessOptions
---@return sessile.SendOutcome? outcome
---@return string? message
---@return string? code
function sessile.send(opts) end

---What a tool or a hook returns to end its loop until somebody answers.
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

---@class sessile.keys
local key = {}

---@class sessile.Key

---The environment variable of that name.
---@param name string
---@return sessile.Key
function key.env(name) end

---A file of ours, mode 0600 or stricter.
---@param path string
---@return sessile.Key
function key.file(path) end

---What a program prints, less one newline. The words reach it as they are.
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

---The caller's fields; what was read has id, key, tokens, time and json behind them, which
---pairs() does not see.
---@class sessile.Message
---@field role sessile.Role
---@field content? string|table[]
---@field author? string
---@field tool_calls? sessile.ToolCall[]
---@field tool_call_id? string
---@field timestamp? integer ms since the epoch, the caller's
---@field usage? table
---@field metadata? table
---@field id? string entry id ("0000002a"), or the name of what a policy wrote ("00000016.1")
---@field key? string the same
---@field tokens? integer
---@field time? integer ms, the entry's
---@field json? string the text as kept

---@class sessile.Entry
---@field id string
---@field parent_id string|lightuserdata
---@field timestamp string
---@field type string
---@field source? string
---@field author? string
---@field user? string
---@field data table
---@field json string the text as kept

-- ---------------------------------------------------------------- policies

---Answers with a text or, in a loop, with a message that may have tool_calls and usage; or
---fails with nil, a reason and perhaps a code: "EOVERFLOW" when it was given too much.
---@alias sessile.Model fun(request: sessile.ModelRequest, ctx: sessile.LoopContext):
---(string|sessile.Message)?, string?, string?

---@class sessile.ModelRequest
---@field messages sessile.Message[]
---@field max_tokens? integer
---@field purpose? string of a policy's question
---@field model? string the name of the model that is wanted
---@field tools? {name: string, description: string?, parameters: table?}[] in a loop, by name
---@field step? integer in a loop, from 1

---A name or path, {"name", option = …}, a table of hooks, or a chain of these.
---@alias sessile.PolicySpec string|sessile.HostPolicy|table

---When every policy that has a `compact` runs it, unasked; judged at the end of a turn.
---@class sessile.Trigger
---@field messages? integer after N messages since the last compaction, or the start
---@field seconds? integer|string after this time since then: 600, "10m", "2h", "1d"
---@field share? number of window less reserve in use: 0.8
---@field overflow? boolean the context does not fit window less reserve
---@field events? string[] names: one is given with the turn

---@class sessile.HostPolicy
---@field name? string
---@field options? table
---@field merge? fun(previous: sessile.Message[]?, next: sessile.State, ctx: sessile.Context): any
---@field summarize? fun(state: sessile.State, ctx: sessile.Context): any
---@field truncate? fun(state: sessile.State, ctx: sessile.Context): any
---@field should_compact? fun(state: sessile.State, ctx: sessile.Context): boolean?
---@field flush? fun(state: sessile.State, ctx: sessile.Context): any
---@field compact? fun(state: sessile.State, ctx: sessile.Context): any
---@field branch_summary? fun(abandoned: sessile.Message[], ctx: sessile.Context): string?

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

---The context as one hook sees it. Indexes start at 1 and stay what the hook was given.
---@class sessile.State
---@field messages sessile.Message[] oldest first, read-only
---@field tokens integer edits included
---@field window number math.huge: unlimited
---@field reserve integer
---@field vars table the policy's notes, kept from run to run
local State = {}

---Takes out i, or i to j.
---@param i integer
---@param j? integer
function State:drop(i, j) end

---Puts fields over the message's own.
---@param i integer
---@param fields table
function State:replace(i, fields) end

---A new message before i; covers: the range that it stands for.
---@param i integer
---@param message sessile.Message
---@param opts? {covers: integer[]}
function State:insert(i, message, opts) end

---@param n integer
---@param unit "messages"|"turns"|"tokens"
function State:keep_last(n, unit) end

---The newest cut that leaves about that many tokens and splits no call from its results.
---@param tokens integer
---@return integer
function State:find_cut(tokens) end

---@return table[]
function State:turns() end

---What stays or goes together with i.
---@param i integer
---@return integer[]
function State:pairs_of(i) end

-- ---------------------------------------------------------------- stores

---@class sessile.Store
---@field url string
---@field sealed boolean
local Store = {}

---@class sessile.SessionOptions
---@field id? string|{session_id: string, user_id: string}
---@field session_id? string
---@field user_id? string
---@field agent? string
---@field user? string
---@field title? string of a new session
---@field metadata? table of a new session
---@field ttl? number|string|false of a new session: seconds, "30d"; false: never
---@field uuid? "v4"|"v7"
---@field policy? sessile.PolicySpec|false
---@field fallback? sessile.PolicySpec|false nil: the store's
---@field trigger? sessile.Trigger|false in place of the store's as a whole
---@field model? sessile.Model
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer longest wait for another writer; nil: the store's
---@field tools? table<string, sessile.Tool|function> of its loops; and so on:
---@field before? sessile.Before|sessile.Before[]
---@field after? sessile.After|sessile.After[]
---@field reducer? sessile.Reducer
---@field max_steps? integer
---@field on_event? fun(event: sessile.Event)
---@field parallel? boolean|fun(tasks: function[])
---@field commit? "step"|"turn"

---Makes a session; without an id it gets a new one.
---@param opts? string|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:create(opts) end

---Opens a session that exists.
---@param opts string|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:resume(opts) end

---Opens a session, or makes it.
---@param opts string|sessile.SessionOptions
---@return sessile.Session? session
---@return string? message
---@return string? code
function Store:session(opts) end

---@class sessile.PutOptions
---@field id? string the session's own, unless given
---@field agent? string
---@field user? string
---@field policy? sessile.PolicySpec|false of the copy's handle; nil: the store's
---@field model? sessile.Model
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer

---Copies a session of another store whole into this one: every entry and branch, the same
---ids, sealed as this store seals. EEXISTS: the name is taken here.
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
---@field modified? integer ms
---@field entries? integer
---@field messages? integer
---@field bytes integer
---@field torn integer bytes of a torn tail that opening it set aside
---@field status string "active", "suspended", "archived", "expired" or "deleted"; or what is
---wrong, as "EDAMAGED": with entries it can be read
---@field labels? string[] each once, pins aside
---@field ttl? integer ms
---@field expires? integer ms
---@field deleted? integer ms
---@field message? string

---@class sessile.ListOptions
---@field agent? string only of this agent
---@field prefix? string only those whose id begins so
---@field title? string only those of exactly this title
---@field user? string only of this user
---@field label? string only those with this label
---@field search? string only those with this in their title
---@field since? integer ms: modified then or later
---@field until? integer ms: modified before
---@field status? string|string[] only of these; nil: all but the deleted
---@field sort? "modified"|"created"|"title"|"size"|"messages"
---@field offset? integer that many of the newest are left out
---@field limit? integer at most that many

---The sessions, newest first: by the time of the newest entry. Only logs that are new or
---changed are opened; with `limit`, no more of them than it takes.
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
---@field since? integer ms
---@field until? integer ms
---@field status? string|string[]
---@field sort? "modified"|"created"|"title"|"size"|"messages"
---@field role? string only messages of this role, no titles and labels
---@field roles? string[] of these
---@field exact? boolean true: "A" is not "a"
---@field head_only? boolean only messages on the path to the head
---@field limit? integer at most that many hits
---@field on_step? fun(step: sessile.Hit) called after each step: how far it is

---@class sessile.Hit
---@field kind "message"|"title"|"label"|"unread"|"nothing" unread: code and message say why;
---nothing: for on_step only
---@field session? string
---@field agent? string
---@field user? string
---@field title? string of the session
---@field entry? string the message, or what the label is on
---@field role? string of a message
---@field field? string of a message where it is: "content", "tool_calls", …
---@field text? string the first occurrence and what is around it, UTF-8
---@field first? integer of the occurrence in text: text:sub(first, last)
---@field last? integer
---@field cut_before? boolean there is more before text
---@field cut_after? boolean
---@field time? integer ms: of the message or the label; of a title, of the newest entry
---@field code? string
---@field message? string
---@field index integer which session this is
---@field total integer the number of them
---@field done integer its entries that were looked at
---@field entries integer of this number

---What has this text in it (ASCII letters large or small): titles, labels and messages of the
---sessions, newest first, for a for loop. Nothing is indexed: logs are read as hits are asked for.
---@param text string
---@param opts? sessile.SearchOptions
---@return (fun(): sessile.Hit?)? iterator
---@return string? message
---@return string? code
function Store:search(text, opts) end

---Deletes a session for good, or softly: then it can be undeleted until it is purged. A store
---of the host's says true, or false: kept, by choice; it has no soft deletion (EUNSUPPORTED).
---@param which string|sessile.OuterId|{id: string|table, agent: string?, user: string?}
---@param opts? {soft: boolean?, reason: string?, actor: string?}
---@return {id_hash: string, time: integer, bytes: integer?}|boolean|nil gone
---@return string? message
---@return string? code
function Store:delete(which, opts) end

---Brings back a session that was deleted softly.
---@param which string|{id: string|table, agent: string?, user: string?}
---@param opts? {actor: string?}
---@return true? ok
---@return string? message
---@return string? code
function Store:undelete(which, opts) end

---Deletes what has expired, and what was deleted softly longer ago than `retention` ("90d").
---@param opts? {agent: string?, retention: number|string|nil, dry_run: boolean?}
---@return sessile.Listed[]? rows what went, or would
---@return string? message
---@return string? code
function Store:purge(opts) end

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
---@field ok boolean nothing is damaged, or all that was is salvaged
---@field sessions integer
---@field entries integer
---@field bytes integer
---@field lost integer entries that cannot be read
---@field damaged integer logs
---@field salvaged integer logs
---@field findings sessile.Finding[]

---A count of tokens and how well it is known.
---@class sessile.Tokens
---@field tokens integer
---@field low integer
---@field high integer
---@field source "usage"|"exact"|"host"|"fitted"|"estimate" of several the least
---@field missing? string of a store's counts: why the encoding that was wanted is not used
---@field each? sessile.Tokens[] of count_messages: one a message

---Tokens of a text: by the encoding of the store's model, else by the host's counter, else by
---estimate.
---@param text string
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Store:count(text) end

---Tokens of messages that are in no session.
---@param list sessile.Message[]
---@param opts? {model?: string, tools?: table[], system?: string}
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Store:count_messages(list, opts) end

---Looks at one session or at all; changes nothing unless it is to salvage.
---@param opts? string|{id: string?, agent: string?, user: string?, salvage: boolean?,
---on_step: fun(step: table)?}
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
---@field users? integer that have a secret of their own
---@field user_logs? integer sealed with one
---@field old_logs? integer that reseal would seal again
---@field odd_logs? integer whose first line could not be read
---@field epochs? {epoch: integer, logs: integer}[] newest first

---What may be said of the store's keys; never a key.
---@return sessile.Keys? keys
---@return string? message
---@return string? code
function Store:keys() end

---@class sessile.RotateOptions
---@field key? sessile.Key the new secret; nil: the same secret, a new epoch
---@field make? boolean of key.file: made with a random key when it is not there

---A new epoch, which seals new sessions; or another secret for the store, which the old one
---opens no more. No session is touched.
---@param opts? sessile.RotateOptions
---@return integer? epoch the newest
---@return string? message
---@return string? code
function Store:rotate(opts) end

---@class sessile.ResealState
---@field logs integer in the store
---@field seen integer of which dealt with
---@field resealed integer
---@field forgotten integer of users that were forgotten
---@field failed integer left as they were
---@field dropped integer older epochs, dropped at the end
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

---Makes every session of a user unreadable for ever, in copies of the logs too.
---@param user string
---@return integer? sessions that could be read until now
---@return string? message
---@return string? code
function Store:forget(user) end

---@class sessile.BackupOptions
---@field keys? string the users' secrets go to a file of their own, at this path, and are not in
---   the backup: so a user who is forgotten later is forgotten there as well, once it is removed
---@field update? boolean the files are there: what came since is added to them
---@field progress? fun(state: sessile.MigrateState): boolean? called after each piece; false: stop

---Copies the store, as it stands, into a file: a store in a SQLite database ("sqlite:FILE"), that
---the same secret opens; or whatever store the URL names. The file appears when it is whole (until
---then it is FILE.part, and an interrupted backup is gone on with); EEXISTS: it is there. Others
---may write to the store meanwhile. It is put back with sessile.migrate.
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
---@field lost integer entries; a tombstone stands in for each

---An entry of another session.
---@class sessile.Link
---@field id string
---@field agent string
---@field user string
---@field entry string its id
---@field tag? string what its line was known by

---@class sessile.Session
---@field id string
---@field agent string
---@field user string
---@field created integer ms
---@field modified integer ms
---@field torn integer bytes that recovery set aside when it was opened and since
---@field damage? sessile.Damage it can be read, and nothing can be written to it
---@field title string may be set; raises when that fails
---@field unsaved integer over an adapter: records that it has not kept, and this handle alone has
---@field origin? sessile.Link of a fork: what it was forked from, and where
---@field parent? sessile.Link of a child: the session that it was begun from, and where
local Session = {}

---One message, committed alone; no policy runs.
---@param message sessile.Message|sessile.Json
---@return string? id
---@return string? message
---@return string? code
function Session:append(message) end

---@class sessile.ForkOptions
---@field id? string of the fork; nil: a new one
---@field agent? string nil: the session's
---@field user? string nil: the session's; "": nobody's
---@field title? string nil: the session's, as it is now
---@field metadata? table members that are put over the session's own
---@field uuid? "v4"|"v7"
---@field policy? sessile.PolicySpec|false of the fork's handle; nil: the session's
---@field model? sessile.Model
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer

---A new session with everything up to an entry, which is its head: ids keep their meaning,
---branches that were left before it, and labels, title, settings and metadata as they are
---now, come along; a pause does not. nil, or options alone: up to the head.
---@param entry? string an entry id, or a label that is on one entry alone
---@param opts? sessile.ForkOptions
---@return sessile.Session? fork
---@return string? message
---@return string? code
function Session:fork(entry, opts) end

---@class sessile.ChildOptions: sessile.ForkOptions
---@field context? boolean true: it begins as a fork at the head; else it is empty

---A session for a sub-agent, with a log of its own, linked to this one both ways. It has this
---one's policy and model unless others are given.
---@param opts? sessile.ChildOptions
---@return sessile.Session? child
---@return string? message
---@return string? code
function Session:child(opts) end

---@class sessile.Subsession
---@field id string
---@field agent string
---@field user string
---@field entry string this session's entry that it was begun at
---@field time integer ms
---@field state "open"|"merged"|"discarded"
---@field merged? string the newest message that came of it

---The children of this session, oldest first, as its own log has them.
---@return sessile.Subsession[]? rows
---@return string? message
---@return string? code
function Session:subsessions() end

---@class sessile.MergeOptions
---@field summary string|true the text, or true: asked of the model ("child_summary")
---@field role? sessile.Role of the message; "user"
---@field metadata? table beside {kind = "child_summary", child =, agent =}
---@field into? sessile.Session a handle of the parent; else the one that made the child
---@field model? sessile.Model
---@field prompt? string what the model is told, instead of the built-in text
---@field max_tokens? integer of a summary; 1500

---Appends what came of this child to its parent, as a message that starts no turn, and
---records it, in one commit. A model that fails merges nothing: EPOLICY.
---@param opts sessile.MergeOptions
---@return string? id of the message, in the parent
---@return string? message
---@return string? code
function Session:merge(opts) end

---Records in the parent that nothing is to come of this child, which stays as it is.
---@param opts? {reason: string?, into: sessile.Session?}
---@return true? done
---@return string? message
---@return string? code
function Session:discard(opts) end

---@class sessile.TurnOptions
---@field usage? table what the provider reported
---@field model? sessile.Model|string the host's function, or the name of the model that spoke
---@field model_name? string
---@field metadata? table
---@field base? string the head the turn was thought on
---@field on_conflict? "fail"|"append"|"branch" when the base is no longer the head: ECONFLICT,
---or written at the head as it is, or beside what came between, and the head stays
---@field policy? sessile.PolicySpec|false
---@field fallback? sessile.PolicySpec|false nil: the session's
---@field trigger? sessile.Trigger|false in place of the session's as a whole
---@field event? string the name of what happened: fires a trigger that lists it
---@field checkpoint? sessile.CheckpointRules|false in place of the session's
---@field state? any for a checkpoint that is due; else checkpoint.state is asked
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer longest wait of each of its calls for another writer

---The messages of one turn as one commit; then policies run.
---@param messages (sessile.Message|sessile.Json)[]
---@param opts? sessile.TurnOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:turn(messages, opts) end

---@class sessile.CompactOptions
---@field policy? sessile.PolicySpec
---@field fallback? sessile.PolicySpec|false
---@field model? sessile.Model
---@field instructions? string
---@field reason? string
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer longest wait of each of its calls for another writer

---Runs a policy on the context at the head.
---@param opts? sessile.CompactOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:compact(opts) end

---@class sessile.BranchOptions
---@field summary? string|boolean what is left, in a text; true: asked of the policy or the model
---@field policy? sessile.PolicySpec
---@field model? sessile.Model
---@field model_name? string of the model to ask, when no policy does
---@field instructions? string what a summary should look at
---@field base? string the head it was thought on; else the one this handle last showed
---@field on_conflict? "fail"|"append" when the head is another: ECONFLICT; go all the same
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer longest wait of each of its calls for another writer

---Moves the head to an entry, where the conversation goes on; what is left stays in the log. A
---summary that fails stops nothing: outcome.policy says why there is none.
---@param id string a message, turn, compaction, branch summary, or the header; its id, or a
---label that is on it alone
---@param opts? sessile.BranchOptions
---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Session:branch(id, opts) end

---@class sessile.Node
---@field id string
---@field parent? string of some types only: the nearest ancestor that is among them
---@field type string
---@field role? sessile.Role
---@field tokens integer
---@field total_tokens integer of all messages from the header to here
---@field time integer ms, the entry's
---@field is_path boolean of the conversation; false: a fact
---@field on_path boolean on the path to the head
---@field is_head boolean
---@field labels string[] in force; "pinned" is the pin
---@field in_context boolean the model would be shown it as it stands
---@field children sessile.Node[] oldest first
---@field entry sessile.Entry read when first looked at
---@field timestamp string read with the entry

---@class sessile.Tree
---@field root? sessile.Node nil when the header is not among the types
---@field current string the head's id
---@field nodes table<string, sessile.Node> by id
---@field list sessile.Node[] in the order of the log

---The entries as a tree: all of them, those of some types, those that have a label.
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

---The ids of what goes on from an entry, oldest first.
---@param id string
---@return string[]? ids
---@return string? message
---@return string? code
function Session:children(id) end

---The ids of what else goes on from its parent.
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

---The ids that nothing goes on from.
---@return string[]? ids
---@return string? message
---@return string? code
function Session:leaves() end

---@class sessile.ExportOptions
---@field format? "json"|"jsonl"|"md"|"html" "json"
---@field to? string the name of another agent's format, in the place of `format`
---@field redact? boolean|{name: string, pattern: string, fold: boolean?}[] take out what looks
---like a secret, an address, a home; a list: rules of your own beside those that ship
---@field write fun(chunk: string): any, string?, string? gets each chunk; nil, message, code end it
---@field on_step? fun(entries: integer) as entries are read: how many were, twice each to redact

---The session as a document, written as it is read: see lua/sessile/export/README.md.
---@param opts sessile.ExportOptions
---@return {format: string, redacted: {name: string, values: integer, places: integer}[]?}? done
---@return string? message
---@return string? code
function Session:export(opts) end

---@class sessile.CheckpointRules
---@field messages? integer after this number of new messages since the last one
---@field seconds? integer|string each time so much time passed since then
---@field share? number when this part of the window is passed
---@field events? string[] when a turn names one of these
---@field keep? integer how many are kept; 50
---@field state? fun(session: sessile.Session): any is asked for the state of one

---@class sessile.CheckpointOptions
---@field state? any what the host wants back
---@field name? string
---@field metadata? table
---@field keep? integer how many are kept, this one too; the session's `checkpoint.keep`, or 50

---Writes where the agent stands: the head, and a state of its own.
---@param opts? sessile.CheckpointOptions
---@return string? id
---@return string? message
---@return string? code
function Session:checkpoint(opts) end

---@class sessile.Checkpoint
---@field id string
---@field session string the id of the session that it is of; with its agent and user
---@field agent string
---@field user string
---@field head string
---@field time integer ms
---@field reason "manual"|"periodic"|"event"|"threshold"
---@field messages integer in the context then
---@field tokens integer
---@field state_bytes integer
---@field sound boolean false: it is not what was written
---@field name? string
---@field event? string
---@field agent_version? string
---@field metadata? table

---Those that are kept, newest first.
---@param opts? {name: string?, named: boolean?, since: integer?, until: integer?, reason: string?}
---@return sessile.Checkpoint[]? list
---@return string? message
---@return string? code
function Session:checkpoints(opts) end

---@class sessile.Restored
---@field checkpoint string
---@field head string
---@field state any
---@field json? string the state as it was kept
---@field warnings string[] what is different now

---Verifies a checkpoint and moves the head to where it stands.
---@param wanted string|sessile.Checkpoint its id, its row, or the newest of that name
---@param opts? {force: boolean?} also when another version of the agent made it
---@return sessile.Restored? restored
---@return string? message
---@return string? code
function Session:restore(wanted, opts) end

---Withdraws one.
---@param wanted string|sessile.Checkpoint its id, its row, or the newest of that name
---@return true? ok
---@return string? message
---@return string? code
function Session:delete_checkpoint(wanted) end

---@class sessile.Parked
---@field id string the entry that wrote it down
---@field time integer ms
---@field policy string which asks
---@field refused boolean it was answered, and its policy refused: answer(nil) tries again
---@field request sessile.ModelRequest

---The runs that wait for a model's answer from elsewhere, oldest first.
---@return sessile.Parked[]? list
---@return string? message
---@return string? code
function Session:pending_runs() end

---@class sessile.AnswerOptions
---@field pending_run? string which one; the newest
---@field failed? string there is no answer, and why
---@field policy? sessile.PolicySpec else the session's, else the one that was pending
---@field model? sessile.Model for what nobody answered yet
---@field timeout_ms? integer

---Goes on with a pending run, here or in another process than it began in.
---@param text? string what the model said; nil: it is asked again
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
---@field policy? string names and versions of those whose edits are in it; or the culprit
---@field reason? string "turn", "threshold", "manual", …
---@field instructions? string
---@field summary? string
---@field policies? {name: string, version: integer, hash: string?, options: table}[]
---@field tokens? {before: integer, after: integer}
---@field uncompacts? string the compaction that it takes back
---@field kept? integer messages of its list that were there before
---@field lost? integer
---@field covered? integer
---@field replaced? integer
---@field undone? integer what left since the compaction taken back had written it
---@field written? integer messages that it wrote
---@field restored? integer messages that it put back
---@field in_force? "yes"|"partly"|"no" whether what it did is so to this day
---@field hook? string refusal
---@field message? string refusal: why
---@field law? integer refusal
---@field law_name? string refusal
---@field entry? string refusal: the message it is about
---@field repeated? integer refusal: how often it came again, as far as this handle has seen

---The compactions with a context on the path to the head, and the refusals between them.
---@return sessile.Compaction[]? list oldest first
---@return string? message
---@return string? code
function Session:log() end

---@class sessile.WhyStep
---@field kind string "said", "written", "left", "restored"; "elsewhere" (on another branch),
---"no_message"; "orphan" (not shown), "unanswered", "moved" (shown behind its call)
---@field key string the message asked for, or one that stood for it
---@field at string the entry where it happened
---@field time integer ms
---@field text string a sentence
---@field role? sessile.Role
---@field type? string no_message: the entry's type
---@field disposition? "lost"|"covered"|"replaced"|"undone" left
---@field by? string left: what stands for it; orphan, moved: the message with the call
---@field stands_for? string[] written
---@field compaction? sessile.Compaction written, left, restored

---@class sessile.Explanation
---@field key string
---@field in_context boolean the model is shown this very message
---@field shown? string the message that the model is shown for it
---@field steps sessile.WhyStep[] oldest first
---@field verdict string a sentence
---@field text string all sentences, one a line; also what tostring() gives

---Why a message is in the context at the head, or not.
---@param name string an entry id, a label, or the name of a message that a compaction wrote
---@return sessile.Explanation? explanation
---@return string? message
---@return string? code
function Session:why(name) end

---@class sessile.Uncompacted
---@field compaction? string the entry written; nil: a dry run
---@field undone string the compaction taken back
---@field restored string[] what came back
---@field removed string[] what went
---@field tokens {before: integer, after: integer}
---@field cannot_fit? integer tokens by which the context exceeds window less reserve

---Takes a compaction on the path back; the newest in force that takes no other back when none
---is named. Taking such a compaction back does the first one again.
---@param id? string
---@param opts? {dry_run: boolean?}
---@return sessile.Uncompacted? done
---@return string? message
---@return string? code
function Session:uncompact(id, opts) end

---Every message from the root to the head, compacted or not.
---@param opts? {from: string?, at: string?, limit: integer?, last: integer?, role: string?}
---@return sessile.Message[]? list
---@return string? message
---@return string? code
function Session:messages(opts) end

---@class sessile.ContextInfo
---@field tokens integer
---@field low integer
---@field high integer
---@field source "usage"|"exact"|"host"|"fitted"|"estimate" of several the least
---@field head string
---@field dropped integer
---@field orphans integer
---@field unanswered integer
---@field lost integer entries that damage took
---@field room? integer with a window: what is left of it, less reserve; negative: too much

---@class sessile.ContextOptions
---@field at? string
---@field model? string
---@field tools? table[]
---@field system? string
---@field window? integer
---@field reserve? integer

---What the model would get. model, tools, system: counted as tokens() does. window, reserve: for
---info.room, instead of the session's.
---@param opts? sessile.ContextOptions
---@return sessile.Message[]? list
---@return sessile.ContextInfo|string info
---@return string? code
function Session:context(opts) end

---@param id string an entry id, or, as wherever an entry is meant, a label that it alone has
---@return sessile.Entry? entry
---@return string? message
---@return string? code
function Session:entry(id) end

---All entries in the order of the log, for a for loop; raises when one cannot be read.
---@param opts? {types: string[]?}
---@return (fun(): sessile.Entry?)? iterator
---@return string? message
---@return string? code
function Session:entries(opts) end

---@return string? id
---@return string? message
---@return string? code
function Session:head() end

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

---How long its calls wait for another writer from now on.
---@param timeout_ms integer -1: for ever; 0: the lock is tried once
---@return true? ok
---@return string? message
---@return string? code
function Session:set_timeout(timeout_ms) end

---Syncs what was written with durability "none"; the next write says that it is safe.
---@return true? ok
---@return string? message
---@return string? code
function Session:sync() end

---Waits until others have written entries behind `after`, or behind all that this handle has read;
---then any call that reads shows them. Nothing else runs in this Lua state meanwhile. A store that
---is a table of functions: EUNSUPPORTED.
---@param options? { after?: string, timeout_ms?: integer } timeout_ms nil: as long as it takes
---@return boolean? changed false: the time is up
---@return string id_or_message the newest entry: the next `after`
---@return string? code
function Session:watch(options) end

---Turns, bare appends and compactions on the path.
---@return integer? count
---@return string? message
---@return string? code
function Session:event_count() end

---Tokens of what the model would be sent: what the provider reported and a count of what
---follows it; after a compaction, or where nothing was reported, a count. model: counted for
---that one, whose messages are read for it where they were counted otherwise. tools (as the model
---is given them) and system (a prompt that is no message) are added where no report has them.
---@param opts? {model?: string, tools?: table[], system?: string, at?: string}
---@return integer? tokens
---@return sessile.Tokens|string info
---@return string? code
function Session:tokens(opts) end

---@class sessile.Usage
---@field input integer
---@field output integer
---@field cache_read integer
---@field cache_write integer

---What was reported of one day, model or agent.
---@class sessile.UsageGroup
---@field key string "2026-11-21" (UTC); the model's or agent's name ("": nobody says)
---@field input integer
---@field output integer
---@field cache_read integer
---@field cache_write integer
---@field reports integer turns and messages that reported it
---@field first integer time of the first of them, ms
---@field last integer

---What providers reported, over the whole log, whatever the branch; not what the context
---takes now, which tokens() says. With `by` a list of groups, which add up to it: days oldest
---first, else the largest first.
---@param opts? {by?: "day"|"model"|"agent"}
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

---Puts a label on an entry: UTF-8, 1 to 200 bytes. An entry may have several.
---@param id string
---@param name string
---@return true? ok
---@return string? message
---@return string? code
function Session:label(id, name) end

---Takes a label away; without a name all of the entry's, but not a pin.
---@param id string
---@param name? string
---@return true? ok
---@return string? message
---@return string? code
function Session:unlabel(id, name) end

---Where it stands: "active", "suspended", "archived", "expired" or "deleted"; times in ms.
---@return {status: string, ttl: integer?, expires: integer?, deleted: integer?}? life
---@return string? message
---@return string? code
function Session:life() end

---It expires so long after its newest entry: seconds, or "30d"; nil: never.
---@param span? number|string
---@return true? ok
---@return string? message
---@return string? code
function Session:set_ttl(span) end

---Puts it away, or, with false, takes it out again; it can be used all the same.
---@param on? boolean
---@return true? ok
---@return string? message
---@return string? code
function Session:archive(on) end

---@class sessile.Label
---@field id string the entry
---@field name string "pinned" is the pin
---@field time integer ms
---@field fact string the entry that says so

---The labels in force, by entry.
---@return sessile.Label[]? labels
---@return string? message
---@return string? code
function Session:labels() end

---Keeps a message in the context, unedited, whatever policies propose.
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

---The settings in force (the model, a thinking level: what a host wants back). With a table,
---states its members; the others stay, sessile.null takes one back.
---@param object? table
---@return table|true|nil settings
---@return string? message
---@return string? code
function Session:settings(object) end

---The metadata in force; with a table, as settings.
---@param object? table
---@return table|true|nil metadata
---@return string? message
---@return string? code
function Session:metadata(object) end

---Pauses the session: what would add to the conversation is ESUSPENDED, in any process, until
---it is resumed or cancelled. The outcome's status is "paused".
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

---What it waits for; nil: it is not paused.
---@return sessile.Suspension? pause
---@return string? message
---@return string? code
function Session:suspended() end

---Ends the pause with the messages that were waited for: one, a list, or none.
---@param messages? sessile.Message|sessile.Json|(sessile.Message|sessile.Json)[]
---@return string[]? ids
---@return string? message
---@return string? code
function Session:resume_with(messages) end

---Ends the pause, and every pending run, with nothing appended.
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
---@field on_text? fun(text: string) of a model: tells what is said as it comes, as events "text"
---@field call? string of a tool: the call's id
---@field tool? string its name
---@field attempt? integer how often this call was started, this time included

---@class sessile.Tool
---@field run fun(args: table, ctx: sessile.LoopContext): any, any text, content blocks, any
---JSON-able value, or sessile.pause{…}; nil and a reason, or an error raised, tell the model
---that it failed
---@field description? string
---@field parameters? table JSON schema; given to the model, not checked
---@field repeatable? boolean may run again when a crash left open whether it ran

---Sees the first request and may change or replace it, refuse (nil, reason) or pause.
---@alias sessile.Before fun(request: sessile.ModelRequest, ctx: sessile.LoopContext): any, any
---Sees the last reply before it is kept and may change or replace it, refuse or pause.
---@alias sessile.After fun(reply: sessile.Message, ctx: sessile.LoopContext): any, any
---Makes the next state from the last (nil at first) and what happened since.
---@alias sessile.Reducer fun(state: any, events: sessile.Event[]): any

---@class sessile.Event
---@field type "start"|"interrupted"|"message"|"context"|"model"|"text"|"overflow"|"compact"|
---"tool_start"|"tool_end"|"turn"|"done"|"paused"|"error"
---@field step integer
---@field call? {id: string, name: string, arguments: string|table}
---@field message? sessile.Message|string of overflow and error: what was said
---@field text? string of text: a piece of the answer
---@field [string] any

---@class sessile.SendOptions
---@field model? sessile.Model
---@field model_name? string recorded with what it said
---@field tools? table<string, sessile.Tool|function>
---@field before? sessile.Before|sessile.Before[]
---@field after? sessile.After|sessile.After[]
---@field reducer? sessile.Reducer
---@field max_steps? integer requests to the model; 50
---@field on_event? fun(event: sessile.Event)
---@field parallel? boolean|fun(tasks: function[]) several calls of one message: nil or true:
---at once in a coroutine; a function: runs all tasks and comes back when they have ended
---@field commit? "step"|"turn" "step": each message is on disk before the next step; "turn":
---all of them become one turn at the end
---@field policy? sessile.PolicySpec|false
---@field trigger? sessile.Trigger|false in place of the session's, when the turn is whole
---@field fallback? sessile.PolicySpec|false
---@field event? string what happened: fires a trigger, or a checkpoint, that lists it
---@field checkpoint? sessile.CheckpointRules|false in place of the session's
---@field metadata? table of the turn
---@field on_conflict? "fail"|"append"
---@field window? integer
---@field reserve? integer
---@field timeout_ms? integer

---A message through hooks, model, tools, hooks, turn and policy; nil goes on with what was
---under way. nil, message, code when nothing could begin.
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
---@field value any what the reducer made last

---What sends have left behind.
---@return sessile.InteractionState? state
---@return string? message
---@return string? code
function Session:state() end

---Writes what a send could not. true: written; nil alone: there was nothing.
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
---@field reply? sessile.Message completed: the model's last message
---@field text? string what it says
---@field usage? table<string, integer> summed over the requests
---@field error? string failed: why
---@field code? string failed: as "ECONFLICT", "ELIMIT" (max_steps), "ECANCELLED", or the model's
---@field unsaved? sessile.Message[] failed: what could not be written; session:save writes it
---@field reason? string paused: until s:resume_with or s:cancel
---@field suspension? string paused: the entry that says so
---@field state? any paused
---@field messages? sessile.Message[] without a session: what is new

---@class sessile.AgentOptions: sessile.SendOptions
---@field name? string
---@field session? sessile.Session|string a session, or an id in `store`, made when missing
---@field store? sessile.Store

---@class sessile.Agent
---@field name? string
---@field session? sessile.Session
---@field store? sessile.Store
local Agent = {}

---@class sessile.RunOptions: sessile.AgentOptions
---@field messages? sessile.Message[] without a session: what was said before

---Runs on a message; nil goes on with what was under way. Options come before the agent's.
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

---@class sessile.Departure
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
---@field removals sessile.Departure[]
---@field too_little boolean
---@field reason? string why the policies last compacted: "event", "overflow", "threshold",
---"timer"; "turn": nothing said so; else the reason given
---@field fallback? sessile.FallbackVerdict it was refused, and this ran instead

---@class sessile.FallbackVerdict: sessile.Verdict
---@field refusal? string the entry of its own refusal
---@field repeated? integer how often the same refusal came again

---@class sessile.Outcome
---@field status "completed"|"paused"
---@field pending_run? string paused: the entry to answer
---@field checkpoint? string that the turn made by itself
---@field checkpoint_failed? string why one that was due could not be made
---@field suspension? string paused by the host: the entry that says why
---@field kind "turn"|"compact"|"plan"|"answer"|"branch"|"suspend"
---@field ids string[] of the turn's messages
---@field turn? string the turn's own entry
---@field head string the head after the run; of a turn beside the head, its last entry
---@field from? string branch: the head that was left
---@field branch_summary? string branch: the entry with the summary
---@field saved? true nil: not kept by the host's adapter, by its choice
---@field context sessile.Message[] fetched when first read
---@field tokens {before: integer, after: integer}
---@field policy? sessile.Verdict nil without a policy
---@field removals sessile.Departure[] what left the context, whoever took it out
---@field cannot_fit? integer tokens by which the context exceeds window less reserve
---@field compaction? string
---@field repeated? integer how often the same refusal came again since it was recorded
---@field refusal? string
---@field summary? string
---@field engine_us integer
---@field policy_us integer
---@field log string[] what policies said with ctx.log: the host's, then the files'

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
---@field removals sessile.Departure[]
---@field cannot_fit? integer
---@field summary? string
---@field engine_us integer
---@field policy_us integer
---@field log string[]
local Plan = {}

---Before and after, one line a message, and the same as rows.
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

---Goes on: true when it is done, a need, or nil, message, code.
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

---Writes it down, to be answered later and perhaps elsewhere, and ends it. Its id.
---@return string? pending_run
---@return string? message
---@return string? code
function Run:defer() end

---Answers as turn, compact and plan do.
---@param need sessile.Need
---@return true? ok
---@return string? message
---@return string? code
function Run:answer(need) end

---@return sessile.Outcome? outcome
---@return string? message
---@return string? code
function Run:outcome() end

---Before it is done: the turn stands, the proposal is dropped.
---@return true ok
function Run:close() end

return sessile
