"""judge.py FILE PROTO IMPORTED: what Google's own reader and writer say of the JSON of messages.

Each line of FILE is `HEX TAB JSON`: a message in protobuf's bytes, and JSON that is said to be
the same message; or `refused TAB JSON`. One line of output for each:

    same TAB JSON      the JSON is that message, and this is how Google's writer spells it
    refused            the reader refuses the JSON
    differs            it is another message
"""
import importlib
import os
import subprocess
import sys
import tempfile

from google.protobuf import json_format


def compiled(proto, imported):
    """The module that protoc makes of a .proto file, and of one that it imports."""
    with tempfile.TemporaryDirectory() as made:
        folders = ["-I" + os.path.dirname(path) for path in (proto, imported)]
        subprocess.run(["protoc", "--python_out", made, *folders, proto, imported], check=True)
        sys.path.insert(0, made)
        return importlib.import_module(os.path.basename(proto).replace(".proto", "_pb2"))


def judge(kinds, expected, text):
    try:
        read = json_format.Parse(text, kinds())
    except (json_format.ParseError, TypeError):  # the latter for `1`
        return "refused"
    if expected == "refused":
        return "differs"
    message = kinds()
    message.ParseFromString(bytes.fromhex(expected))
    # Bytes, because a NaN is not equal to itself.
    if read.SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True):
        return "differs"
    return "same\t" + json_format.MessageToJson(message, indent=None)


def main():
    kinds = compiled(sys.argv[2], sys.argv[3]).Kinds
    with open(sys.argv[1], encoding="utf-8", newline="\n") as lines:
        for line in lines:
            expected, text = line.rstrip("\n").split("\t", 1)
            print(judge(kinds, expected, text), flush=True)


if __name__ == "__main__":
    main()
