"""otlp_receiver.py PORT ANSWERS: a receiver of OTLP over HTTP in JSON, for tests.

Decodes with Google's protobuf, by the messages of otlp.proto; OTLP_PROTOS=FOLDER names a
checkout of opentelemetry-proto to decode by instead. Beyond what protobuf asks for, OTLP's own
rules are held: names in lowerCamelCase, ids as hex, enums as numbers, 64 bits as strings.

Prints its port, then a line of JSON for each request: path, headers, status of the answer, and
what was decoded, or why it could not be. ANSWERS are the statuses of successive requests, the
last one for all that follow: "503;retry-after=1 200", "200;sleep=2000 200;rejected=3". With
"200;quiet=1" a line has the number of records instead of what was decoded.
"""
import base64
import json
import os
import re
import subprocess
import sys
import threading
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

REQUESTS = {
    "/v1/traces": "ExportTraceServiceRequest",
    "/v1/metrics": "ExportMetricsServiceRequest",
    "/v1/logs": "ExportLogsServiceRequest",
}
REJECTED = {"/v1/traces": "rejectedSpans", "/v1/metrics": "rejectedDataPoints",
            "/v1/logs": "rejectedLogRecords"}
ID_BYTES = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def load_messages():
    """The classes of the requests, by path."""
    root = os.environ.get("OTLP_PROTOS")
    if root:
        files = ["opentelemetry/proto/collector/%s/v1/%s_service.proto" % (name, name)
                 for name in ("trace", "metrics", "logs")]
    else:
        root, files = os.path.dirname(os.path.abspath(__file__)), ["otlp.proto"]
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "-I", root, "--include_imports",
                        "--descriptor_set_out=" + out.name] + files, check=True)
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    found = {}
    for file in descriptors.file:
        pool.Add(file)
    for file in descriptors.file:
        for message in file.message_type:
            name = file.package + "." + message.name
            found[message.name] = pool.FindMessageTypeByName(name)
    factory = message_factory.MessageFactory(pool)
    return {path: factory.GetPrototype(found[name]) for path, name in REQUESTS.items()}


def strict(value, descriptor, where):
    """Checks OTLP's own rules, and returns the value as proto3's JSON has it."""
    if not isinstance(value, dict):
        raise ValueError(where + " is not an object")
    names = {field.json_name: field for field in descriptor.fields}
    out = {}
    for name, inner in value.items():
        if name not in names:
            raise ValueError(where + "." + name + " is not a field")
        field = names[name]
        if field.label == field.LABEL_REPEATED:
            if not isinstance(inner, list):
                raise ValueError(where + "." + name + " is not a list")
            out[name] = [scalar(one, field, where + "." + name) for one in inner]
        else:
            out[name] = scalar(inner, field, where + "." + name)
    return out


def scalar(value, field, where):
    if field.type == field.TYPE_MESSAGE:
        return strict(value, field.message_type, where)
    if field.type == field.TYPE_ENUM:
        if type(value) is not int or value not in field.enum_type.values_by_number:
            raise ValueError(where + " is not the number of an enum")
    elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
        if not isinstance(value, str) or not re.fullmatch(r"0|-?[1-9][0-9]*", value):
            raise ValueError(where + " is not 64 bits in a string")
    elif field.type == field.TYPE_BYTES:
        size = ID_BYTES[field.json_name]
        if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{%d}" % (2 * size), value):
            raise ValueError(where + " is not an id in hex")
        return base64.b64encode(bytes.fromhex(value)).decode()
    elif field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32):
        if type(value) is not int:
            raise ValueError(where + " is not a number")
    elif field.cpp_type == field.CPPTYPE_DOUBLE and type(value) not in (int, float):
        raise ValueError(where + " is not a number")
    return value


def unique_names(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a name stands twice")
    return dict(pairs)


def readable(value):
    """Ids as hex again."""
    if isinstance(value, list):
        return [readable(one) for one in value]
    if isinstance(value, dict):
        return {name: base64.b64decode(one).hex() if name in ID_BYTES else readable(one)
                for name, one in value.items()}
    return value


def decode(path, body):
    if path not in MESSAGES:
        raise ValueError("not a path of OTLP")
    value = json.loads(body.decode("utf-8"), object_pairs_hook=unique_names)
    cls = MESSAGES[path]
    message = json_format.ParseDict(strict(value, cls.DESCRIPTOR, path), cls())
    again = cls.FromString(message.SerializeToString())
    return readable(json_format.MessageToDict(again, use_integers_for_enums=True))


def count(decoded):
    """The records of a request."""
    resource = next(iter(decoded.values()))[0]
    scope = next(value for name, value in resource.items() if name.startswith("scope"))[0]
    return len(next(value for name, value in scope.items() if name != "scope"))


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    turn = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answers = sys.argv[2].split()
        answer = answers[min(Receiver.turn, len(answers) - 1)].split(";")
        Receiver.turn += 1
        options = dict(part.split("=", 1) for part in answer if "=" in part)
        status = int(next((part for part in answer if part.isdigit()), "200"))
        said = {"path": self.path, "status": status, "bytes": len(body),
                "headers": {name.lower(): value for name, value in self.headers.items()}}
        try:
            said["decoded"] = decode(self.path, body)
            if "quiet" in options:
                said["records"] = count(said.pop("decoded"))
        except Exception as why:  # pylint: disable=broad-except
            said["error"] = repr(why)
        with SAYING:  # requests have threads
            print(json.dumps(said), flush=True)
        time.sleep(int(options.get("sleep", 0)) / 1000)
        text = b"{}"
        if "rejected" in options:
            text = json.dumps({"partialSuccess": {REJECTED[self.path]: options["rejected"],
                                                  "errorMessage": "no"}}).encode()
        try:
            self.send_response(status)
            if "retry-after" in options:
                self.send_header("Retry-After", options["retry-after"])
            if "location" in options:
                self.send_header("Location", options["location"])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            self.close_connection = True  # it did not wait

    def log_message(self, *_):
        pass


SAYING = threading.Lock()
MESSAGES = load_messages()
ThreadingHTTPServer.allow_reuse_address = True
ThreadingHTTPServer.daemon_threads = True
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
print(server.server_address[1], flush=True)
server.serve_forever()
