-- key.lua: where the secret of a sealed store comes from: values for open's `key`.
--
-- Such a value names the source. The secret is read when the store is opened, passed to the engine
-- and not kept. Lua cannot wipe a string: to keep a secret out of Lua's memory use .env or .file,
-- which the engine reads itself.

local dialect = require "sessile.dialect"
local options = require "sessile.options"
local paths = require "sessile.paths"

local key = {}
local meta = { __name = "sessile.Key" }

local MOST = 65536 -- bytes of a key that is read here

-- Printing a key never shows the secret.
function meta.__tostring(self)
  return "sessile.Key: " .. self.source
end

local function make(source, value)
  return setmetatable({ source = source, value = value }, meta)
end

local function check_text(who, value)
  if type(value) ~= "string" or value == "" or value:find("\0", 1, true) then
    options.misuse(who .. ": a string expected, not empty and without zero bytes")
  end
  return value
end

--- The environment variable of that name.
function key.env(name)
  return make("env", check_text("sessile.key.env", name))
end

--- A file of this user, mode 0600 or stricter.
function key.file(path)
  return make("file", paths.expand(check_text("sessile.key.file", path)))
end

--- The secret itself.
function key.secret(text)
  return make("secret", check_text("sessile.key.secret", text))
end

--- The output of a program without its last newline. argv is a list; no shell is used.
function key.command(argv)
  if type(argv) ~= "table" or #argv == 0 then
    options.misuse("sessile.key.command: a list of words expected, the program first")
  end
  local words = {}
  for i, word in ipairs(argv) do
    words[i] = check_text("sessile.key.command", word)
  end
  if words[1]:sub(1, 1) == "-" then
    options.misuse("sessile.key.command: the program's name starts with '-'")
  end
  return make("command", words)
end

-- Inside single quotes a shell changes no byte except the quote itself.
local function quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function run(words)
  local quoted = {}
  for i, word in ipairs(words) do
    quoted[i] = quote(word)
  end
  local command = "exec " .. table.concat(quoted, " ")
  if dialect.is_luajit then -- whose pipes do not tell how a program ended
    command = "(" .. command .. "); printf '\n%d' $?"
  end
  local pipe, why = io.popen(command, "r")
  if not pipe then
    return nil, ("the key command '%s' cannot be started: %s"):format(words[1], why), "ESEALED"
  end
  local text = pipe:read("a")
  local ok, how, number = pipe:close()
  if dialect.is_luajit then
    text, number = text:match "^(.*)\n(%d+)$"
    ok, how = number == "0", "exit"
  end
  if not ok then
    return nil, ("the key command '%s' failed (%s %s): see what it said on stderr")
      :format(words[1], how, number), "ESEALED"
  end
  text = text:gsub("\r?\n$", "")
  if text == "" or text:find("\0", 1, true) then
    return nil, ("the key command '%s' printed no usable secret"):format(words[1]), "ESEALED"
  end
  return text
end

--- Whether a value is a key.
function key.is(value)
  return getmetatable(value) == meta
end

--- The secret of a model's endpoint, without its last newline; nil, message, code. Keys of stores
--- are not read here.
function key.text(who, value)
  if not key.is(value) then
    options.misuse(who .. ": sessile.key.env, .file, .command or .secret expected")
  end
  local text, where = value.value, nil
  if value.source == "env" then
    text, where = os.getenv(value.value), "the variable " .. value.value
  elseif value.source == "file" then
    where = "the key file " .. value.value
    local file, why = io.open(value.value, "rb")
    if not file then
      return nil, "the key file cannot be read: " .. why, "EDENIED"
    end
    text = file:read(MOST)
    file:close()
  elseif value.source == "command" then
    local message, code
    text, message, code = run(value.value)
    if not text then
      return nil, message, code == "ESEALED" and "EDENIED" or code
    end
  end
  text = (text or ""):gsub("\r?\n$", "")
  if text == "" or text:find "%c" then
    return nil, ("%s holds no usable key"):format(where or "what was given"), "EDENIED"
  end
  return text
end

--- The engine's key_source and key for open's `key`; nil, message, code. Raises if it is not a key.
function key.resolve(who, value)
  if value == nil then
    return "default"
  end
  if value == false then
    return "plain"
  end
  if getmetatable(value) ~= meta then
    options.misuse(who .. ": option 'key': sessile.key.env, .file, .command or .secret "
      .. "expected, or false for a plain store")
  end
  if value.source ~= "command" then
    return value.source, value.value
  end
  local secret, message, code, retry_ms, rule = run(value.value)
  if not secret then
    return nil, message, code, retry_ms, rule
  end
  return "secret", secret
end

--- The same for a store kept by the host: records are plain unless there is a key of 32 bytes,
--- given directly or with key.secret.
function key.of_records(who, value)
  if value == nil or value == false then
    return "plain"
  elseif type(value) == "string" then
    if #value ~= 32 then
      return nil, ("an adapter's key has 32 bytes, this one has %d: a passphrase is not accepted")
        :format(#value), "EINVALID"
    end
    return "secret", "hex:" .. (value:gsub(".", function(c)
      return ("%02x"):format(c:byte())
    end))
  end
  return key.resolve(who, value)
end

return key
