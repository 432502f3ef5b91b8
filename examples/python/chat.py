"""A chat that remembers. Each line of the input is a question; question and answer are stored as
one turn. When it is started again with the same name, it goes on where it was.

    sessile rpc --client python > sessile_rpc.py
    python3 chat.py tram

/undo takes back the newest question and its answer, /context prints what the model would get.
With OPENAI_BASE_URL and OPENAI_MODEL (and OPENAI_API_KEY) it asks that endpoint, else a script.
"""
import json
import os
import sys
import urllib.request
from urllib.error import URLError

from sessile_rpc import Sessile, SessileError

URL = os.environ.get("OPENAI_BASE_URL")
session = sys.argv[1] if len(sys.argv) > 1 else "chat"


def script(messages):
    if messages[0]["role"] == "system":
        return "Some questions were asked and answered."  # a summary
    questions = [m["content"] for m in messages if m["role"] == "user"]
    newest = questions[-1] if questions else ""
    return "You asked %d things; the newest is: %s" % (len(questions), newest)


def ask(messages):
    if not URL:
        return script(messages)
    headers = {"content-type": "application/json"}
    if os.environ.get("OPENAI_API_KEY"):
        headers["authorization"] = "Bearer " + os.environ["OPENAI_API_KEY"]
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages}).encode()
    request = urllib.request.Request(URL + "/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


def context(store):
    return [read["message"] for read in store.session_context(session=session)["messages"]]


def answer(store, line):
    if line == "/undo":
        store.session_pop(session=session, n=2)
        return "taken back"
    if line == "/context":
        return "\n".join("%s: %s" % (m["role"], m["content"]) for m in context(store))
    question = {"role": "user", "content": line}
    text = ask(context(store) + [question])
    outcome = store.session_turn(session=session, messages=[
        question, {"role": "assistant", "content": text}])
    if outcome.get("policy", {}).get("applied"):
        text += "\n(older messages were summarized)"
    return text


def main():
    # The policy asks for summaries.
    with Sessile(os.environ.get("SESSILE_BIN", "sessile"),
                 model=lambda asked: {"text": ask(asked["request"]["messages"])}) as store:
        store.session_open(session=session, create=True, policy="summarize",
                           window=int(os.environ.get("WINDOW", "8000")))
        for line in sys.stdin:
            if line.strip():
                print(answer(store, line.strip()), flush=True)


try:
    main()
except (SessileError, URLError) as why:
    print("chat: %s" % why, *filter(None, [getattr(why, "next", None)]), sep="\n", file=sys.stderr)
    sys.exit(1)
