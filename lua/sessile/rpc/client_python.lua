--- client_python: a client for Python, one file, the standard library alone.

local core = require "sessile.core"
local py = require "sessile.rpc.emit_py"
local schema = require "sessile.rpc.schema"
local ts = require "sessile.rpc.emit_ts"
local words = require "sessile.rpc.words"

local client = {}

local TEXT = [==[
"""A client of sessile rpc for Python 3.8 and newer, written by sessile @VERSION@:
    sessile rpc --client python > sessile_rpc.py

    from sessile_rpc import Sessile
    with Sessile() as store:
        store.session_open(session="bug-42", create=True)
        store.session_turn(session="bug-42", messages=[{"role": "user", "content": "hi"}])

Each method is a function: session/turn is session_turn. It may be called from several threads.
"""
from __future__ import annotations

import json
import subprocess
import threading
from typing import Any, Callable, Dict, List, Literal, Optional, TypedDict, Union

@TYPES@


class SessileError(Exception):
    """A failure that the server reports: code, status as "NOTFOUND", next (what to do), data."""

    def __init__(self, failure: Dict[str, Any], method: str) -> None:
        super().__init__("%s: %s" % (method, failure.get("message")))
        self.code = failure.get("code")
        self.data = failure.get("data") or {}
        self.status = self.data.get("status", "INVALID")
        self.next = self.data.get("next")


class Pending:
    """A call that was sent: result() waits for its answer, cancel() tells that it is not wanted."""

    def __init__(self, client: "Sessile", number: int, method: str) -> None:
        self._client, self._number, self._method = client, number, method
        self._done = threading.Event()
        self._answer: Dict[str, Any] = {}

    def result(self, timeout: Optional[float] = None) -> Any:
        if not self._done.wait(timeout):
            raise TimeoutError(self._method)
        if "error" in self._answer:
            raise SessileError(self._answer["error"], self._method)
        return self._answer.get("result")

    def cancel(self) -> None:
        self._client._send({"method": "rpc/cancel", "params": {"id": self._number}})


class Sessile:
    """One server, and the store that it has open.

    command: the executable; args: words before "rpc", as ["--store", "./sessions"]. model, hook,
    state and embed answer what runs ask: each gets the parameters of the question, a hook also a
    function(index, previous=False) that reads a message; what one raises is its failure. They run
    on threads of their own. embeds: who embeds, {"name":, "dims":}. on_entries: told after
    session_watch.
    """

    def __init__(self, command: str = "sessile", args: Optional[List[str]] = None,
                 name: str = "python", model: Optional[Callable[..., ModelAnswer]] = None,
                 hook: Optional[Callable[..., HookAnswer]] = None,
                 state: Optional[Callable[..., StateAnswer]] = None,
                 embed: Optional[Callable[..., EmbedAnswer]] = None,
                 embeds: Optional[Embeds] = None,
                 on_entries: Optional[Callable[[Dict[str, Any]], None]] = None,
                 **process: Any) -> None:
        self._answers = {n: f for n, f in (("model", model), ("hook", hook), ("state", state),
                                           ("embed", embed)) if f}
        self._on_entries = on_entries
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: Dict[int, Pending] = {}
        self._gone: Optional[str] = None
        self._process = subprocess.Popen([command, *(args or []), "rpc"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, **process)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        hello: Dict[str, Any] = {"protocol": @PROTOCOL@, "client": name,
                                 "asks": list(self._answers)}
        if embeds:
            hello["embeds"] = embeds
        self.hello: Hello = self.call("rpc/hello", **hello)

    def __enter__(self) -> "Sessile":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> int:
        """Ends the server after it has answered everything. Returns its exit code."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        code = self._process.wait()
        self._reader.join()
        if self._process.stdout:
            self._process.stdout.close()
        return code

    def send(self, method: str, **params: Any) -> Pending:
        """Sends a request and does not wait."""
        with self._lock:
            self._number += 1
            pending = Pending(self, self._number, method)
            if self._gone:
                raise SessileError({"message": self._gone}, method)
            self._waiting[self._number] = pending
        self._send({"id": pending._number, "method": method,
                    "params": {n: v for n, v in params.items() if v is not None}})
        return pending

    def call(self, method: str, **params: Any) -> Any:
        """Calls a method by its name, and waits."""
        return self.send(method, **params).result()

    def _send(self, message: Dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            assert self._process.stdin
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._take(json.loads(line))
        with self._lock:
            self._gone = "sessile rpc has ended"
            waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending._answer = {"error": {"message": self._gone}}
            pending._done.set()

    def _take(self, message: Dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        elif "method" in message:
            if self._on_entries:
                self._on_entries(message["params"])
        else:
            with self._lock:
                pending = self._waiting.pop(message["id"], None)
            if pending:
                pending._answer = message
                pending._done.set()

    def _answer(self, message: Dict[str, Any]) -> None:
        kind, params = message["method"][len("ask/"):], message["params"]
        try:
            more = [lambda index, previous=False: self.call(
                "run/message", run=params["run"], index=index, previous=previous)]
            result = self._answers[kind](params, *(more if kind == "hook" else []))
            self._send({"id": message["id"], "result": result})
        except Exception as why:  # the run is told
            self._send({"id": message["id"], "error": {"code": -32000, "message": str(why)}})

@METHODS@
]==]

local KEYWORDS = { ["from"] = true, ["in"] = true, ["is"] = true, ["import"] = true }

-- A method as a function of the class.
local function method_text(one)
  local given, passed = {}, {}
  for _, required in ipairs { true, false } do
    for _, name in ipairs(schema.names(one.params)) do
      local tree = words.read(one.params[name])
      if (not tree.optional) == required then
        local own = KEYWORDS[name] and name .. "_" or name
        local kind = py.type_text(tree)
        given[#given + 1] = required and ("%s: %s"):format(own, kind)
          or ("%s: Optional[%s] = None"):format(own, kind)
        passed[#passed + 1] = ("%q: %s"):format(name, own)
      end
    end
  end
  local star = #given > 0 and ", *, " or ""
  local result = words.read(one.result)
  local kind = py.type_text(result)
  return ('    def %s(self%s%s) -> %s:\n        """%s"""\n        return self.call(%q%s)'):format(
    (one.name:gsub("/", "_")), star, table.concat(given, ", "),
    result.optional and "Optional[" .. kind .. "]" or kind, one.about, one.name,
    #passed > 0 and ", **{" .. table.concat(passed, ", ") .. "}" or "")
end

--- The file.
---@return string
function client.text()
  local methods = {}
  for _, one in ipairs(ts.methods()) do
    methods[#methods + 1] = method_text(one)
  end
  local parts = { VERSION = core.version, TYPES = py.body(),
    PROTOCOL = tostring(require "sessile.rpc.version".PROTOCOL),
    METHODS = table.concat(methods, "\n\n") }
  return (TEXT:gsub("@(%u+)@", parts))
end

return client
