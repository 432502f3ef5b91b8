#!/usr/bin/python3
"""clients.py: writers and watchers of a service's sessions, by gRPC's own library.

    clients.py MESSAGES FOLDER --nodes ADDRESS,… --sessions ID,… [--ca FILE --key KEY]
               [--writers N --first NUMBER] [--watch NAME] [--runner NUMBER]
               [--timeout SECONDS]

MESSAGES is the folder with sessile_pb2.py. Each writer is a thread: it says one message after
the other, in a random session through a random node, and keeps a journal in FOLDER (see
../support/ledger.h). Of three messages

  - two are turns with `follows` and `once`, sent again, to another node each time, until the
    answer comes: the writer is always told;
  - one is an AppendMessage, sent once. UNAVAILABLE of the server's own means that nothing was
    done (refused); what else fails is unknown, and the writer goes on under another number, for
    a call that nobody waits for may still end behind the next one.

FOLDER/times.W has a line for each acknowledgement, in microseconds of the monotonic clock.

--watch: streams the events of all sessions from their first entry, resumes each broken stream
at its cursors through another node, and adds a line `SESSION ENTRY JSON` to FOLDER/watch.NAME
for each entry. A watcher of which a test kills the node sees the end by its keepalive.

--runner: a writer of that number, whose session is its own, named rNUMBER. After each few turns it
compacts with the policy `asker`, which asks a model three times, by Run, and breaks that off
somewhere: it cancels, parks, closes the connection, says nothing until its deadline, or goes
on. What was parked it answers by Answer, at any node. A compaction that an outcome called
applied must be in the list of compactions for ever after.

It runs until it is killed. What no client should ever see ends it with a sentence.
"""
import argparse
import json
import os
import queue
import random
import sys
import threading
import time

import grpc

PATH = "/sessile.v1.SessionService/"
AGAIN = ("UNAVAILABLE", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("messages")
    parser.add_argument("folder")
    parser.add_argument("--nodes", required=True)
    parser.add_argument("--sessions", required=True)
    parser.add_argument("--ca")
    parser.add_argument("--key")
    parser.add_argument("--writers", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--watch")
    parser.add_argument("--runner", type=int)
    parser.add_argument("--timeout", type=float, default=4)
    return parser.parse_args()


given = arguments()
sys.path.insert(0, given.messages)
import sessile_pb2 as pb  # noqa: E402

nodes = given.nodes.split(",")
sessions = given.sessions.split(",")
metadata = [("authorization", "Bearer " + given.key)] if given.key else []


def broken(sentence):
    """A client saw what it never should: says so, and ends all threads."""
    sys.stderr.write("clients.py: %s\n" % sentence)
    sys.stderr.flush()
    os._exit(3)


class Node:
    """A connection of its own to one node: threads do not share one."""

    OPTIONS = [
        ("grpc.keepalive_time_ms", 1000),
        ("grpc.keepalive_timeout_ms", 1000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.use_local_subchannel_pool", 1),
    ]

    def __init__(self, address):
        self.address = address
        if given.ca:
            with open(given.ca, "rb") as file:
                trust = grpc.ssl_channel_credentials(file.read())
            self.channel = grpc.secure_channel(address, trust, self.OPTIONS)
        else:
            self.channel = grpc.insecure_channel(address, self.OPTIONS)

    def call(self, method, request, reply):
        one = self.channel.unary_unary(PATH + method, type(request).SerializeToString,
                                       reply.FromString)
        return one(request, timeout=given.timeout, metadata=metadata)

    def events(self, request):
        one = self.channel.unary_stream(PATH + "StreamSessionEvents",
                                        pb.EventsRequest.SerializeToString,
                                        pb.SessionEvent.FromString)
        return one(request, metadata=metadata)


# ------------------------------------------------------------------ a writer

class Journal:
    """One writer's journal: each line is written whole."""

    def __init__(self, number):
        def file(name):
            return os.open("%s/%s" % (given.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        self.number, self.next = number, 0
        self.lines, self.times = file(str(number)), file("times.%d" % number)

    def send(self, session):
        n, self.next = self.next, self.next + 1
        os.write(self.lines, b"sent %d %s\n" % (n, session.encode()))
        return n, "w.%d.%d." % (self.number, n)

    def acknowledged(self, n, entry):
        os.write(self.times, b"%d\n" % (time.monotonic_ns() // 1000))
        os.write(self.lines, b"acknowledged %d %d\n" % (n, entry))

    def note(self, word, n):
        os.write(self.lines, b"%s %d\n" % (word, n))

    def close(self):
        os.close(self.lines)
        os.close(self.times)


class Writer:
    def __init__(self, number, sessions):
        self.number, self.lives, self.sessions = number, 0, sessions
        self.random = random.Random(number)
        self.nodes = [Node(address) for address in nodes]
        self.journal = Journal(number)
        self.heads = {session: self.make(session) for session in sessions}

    def make(self, session):
        request = pb.CreateRequest(session=pb.Session(id=session), open=True)
        return self.until_answered("CreateSession", request, pb.SessionInfo).head

    def another_life(self):
        self.journal.close()
        self.lives += 1
        self.journal = Journal(self.number + 100 * self.lives)

    def until_answered(self, method, request, reply):
        """Asks until a node answers. Only for calls that may be made again."""
        while True:
            try:
                return self.random.choice(self.nodes).call(method, request, reply)
            except grpc.RpcError as error:
                if error.code().name not in AGAIN:
                    broken("%s of %s: %s %s" % (method, request.session.id, error.code().name,
                                                error.details()))
                time.sleep(0.02)

    def turn(self, session):
        n, text = self.journal.send(session)
        request = pb.TurnRequest(
            session=pb.Session(id=session), messages=[pb.Json(text=message(text))],
            follows=pb.Base(entry=self.heads[session], once=text),
            on_conflict=pb.ON_CONFLICT_APPEND)
        outcome = self.until_answered("Turn", request, pb.Outcome)
        self.heads[session] = outcome.head
        self.journal.acknowledged(n, outcome.first.id)

    def append(self, session):
        n, text = self.journal.send(session)
        request = pb.AppendRequest(session=pb.Session(id=session),
                                   message=pb.Json(text=message(text)))
        try:
            written = self.random.choice(self.nodes).call("AppendMessage", request, pb.Written)
            self.journal.acknowledged(n, written.entry)
        except grpc.RpcError as error:
            name = error.code().name
            own = any(k == "sessile-status" for k, _ in error.trailing_metadata() or ())
            if name == "UNAVAILABLE" and own:
                self.journal.note(b"refused", n)
            elif name in AGAIN:
                self.journal.note(b"unknown", n)
                self.another_life()
            else:
                broken("AppendMessage: %s %s" % (name, error.details()))

    def run(self):
        while True:
            session = self.random.choice(self.sessions)
            if self.random.randrange(3):
                self.turn(session)
            else:
                self.append(session)
            time.sleep(0.002)


class Runner(Writer):
    """Compacts a session of its own, and breaks off."""

    CONFIG = pb.RunConfig(policies=[pb.Policy(name="asker")])

    def __init__(self, number):
        super().__init__(number, ["r%d" % number])
        self.session = pb.Session(id=self.sessions[0])
        self.applied, self.counts = set(), {}

    def ask(self, method, request, reply):
        return self.until_answered(method, request, reply)

    def begun(self):
        """A Run that is broken off somewhere. The entry of its compaction, if it told one."""
        node = Node(self.random.choice(nodes))
        put = queue.Queue()
        put.put(pb.RunRequest(compact=pb.CompactRequest(session=self.session,
                                                        config=self.CONFIG)))
        call = node.channel.stream_stream(PATH + "Run", pb.RunRequest.SerializeToString,
                                          pb.RunEvent.FromString)
        events = call(iter(put.get, None), timeout=2, metadata=metadata)
        how = self.random.choice(("cancel", "park", "close", "silence", "answer", "answer"))
        until, entry = self.random.randrange(4), None
        try:
            for at, event in enumerate(events):
                if event.WhichOneof("what") == "outcome":
                    if event.outcome.verdict == "applied":
                        entry = event.outcome.compaction.id
                elif how == "answer" or at < until:
                    put.put(pb.RunRequest(reply=pb.Answer(text="answer %d" % at)))
                elif how == "cancel":
                    events.cancel()
                elif how == "park":
                    put.put(pb.RunRequest(park=pb.Empty()))
                elif how == "close":
                    node.channel.close()
        except grpc.RpcError as error:
            if error.code().name not in AGAIN:
                broken("Run: %s %s" % (error.code().name, error.details()))
        except ValueError:
            pass  # the channel is closed
        put.put(None)
        node.channel.close()
        return entry

    def answered(self):
        """Answers what is parked until nothing is. The entries of compactions that it was told."""
        where, told = pb.SessionRequest(session=self.session), []
        while True:
            runs = [one for one in self.ask("ListPendingRuns", where, pb.PendingRuns).runs
                    if not one.refused]
            if not runs:
                return told
            request = pb.AnswerRequest(session=self.session, config=self.CONFIG,
                                       answer=pb.Answer(text="a late answer"))
            try:
                outcome = self.random.choice(self.nodes).call("Answer", request, pb.Outcome)
                if outcome.verdict == "applied":
                    told.append(outcome.compaction.id)
            except grpc.RpcError as error:
                if error.code().name not in AGAIN + ("NOT_FOUND", "ABORTED"):
                    broken("Answer: %s %s" % (error.code().name, error.details()))
                time.sleep(0.02)  # it may be answered, or answered by the call before

    def run(self):
        while True:
            for _ in range(5):
                self.turn(self.sessions[0])
            told = [self.begun()] + self.answered()
            self.applied.update(entry for entry in told if entry is not None)
            listed = self.ask("ListCompactions", pb.SessionRequest(session=self.session),
                              pb.CompactionList).compactions
            there = {one.id for one in listed if not one.refused}
            if not self.applied <= there:
                broken("%s: compactions %s were applied and are not there" % (
                    self.sessions[0], sorted(self.applied - there)))


def message(text):
    return json.dumps({"role": "user", "content": text}, separators=(",", ":"))


# ------------------------------------------------------------------ a watcher

def watch(name):
    out = os.open("%s/watch.%s" % (given.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    cursors = {session: 0 for session in sessions}
    pick, resumes = random.Random(name), 0
    while True:
        request = pb.EventsRequest(cursors=[
            pb.Cursor(session=pb.Session(id=session), **{"from": pb.Entry(id=at)})
            for session, at in cursors.items()])
        node = Node(pick.choice(nodes))
        try:
            for event in node.events(request):
                if event.WhichOneof("what") == "gone":
                    broken("%s is gone" % event.session.id)
                if event.WhichOneof("what") != "entry":
                    continue
                session, entry = event.session.id, event.entry
                if entry.entry != cursors[session]:
                    broken("%s: entry %d where %d was due" % (session, entry.entry,
                                                              cursors[session]))
                os.write(out, b"%s %d %s\n" % (session.encode(), entry.entry,
                                               entry.json.text.encode()))
                cursors[session] = entry.entry + 1
        except grpc.RpcError as error:
            if error.code().name not in AGAIN:
                broken("a stream of events: %s %s" % (error.code().name, error.details()))
        node.channel.close()
        resumes += 1
        with open("%s/resumes.%s" % (given.folder, name), "w") as file:
            file.write("%d\n" % resumes)
        time.sleep(0.05)


def guarded(work, *words):
    """A thread that fails ends the program."""
    try:
        work(*words)
    except Exception as error:  # noqa: BLE001
        broken(repr(error))


def write(number):
    Writer(number, sessions).run()


def compact(number):
    Runner(number).run()


threads = [threading.Thread(target=guarded, args=(write, given.first + i))
           for i in range(given.writers)]
if given.runner is not None:
    threads.append(threading.Thread(target=guarded, args=(compact, given.runner)))
if given.watch:
    threads.append(threading.Thread(target=guarded, args=(watch, given.watch)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
