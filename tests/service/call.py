#!/usr/bin/python3
"""call.py: one call of a server's method, by gRPC's own library and Google's protobuf.

    call.py MESSAGES ADDRESS METHOD [JSON] [--key KEY] [--header NAME=VALUE]
            [--ca FILE] [--cert FILE --key-file FILE] [--name HOST] [--timeout SECONDS]

MESSAGES is the folder with sessile_pb2.py, which the build makes of sessile.proto. METHOD is
the name of one in SessionService. JSON is the request, in proto3's mapping, except that a
message of type Json is an object {"text": ...}. Prints one line of JSON: {"code": "OK",
"replies": [...]}, or {"code": ..., "message": ..., "trailers": {...}, "replies": [...]}.
"""
import argparse
import json
import os
import sys
import time

import grpc
from google.protobuf import json_format

# On a loaded machine grpcio sometimes fails to connect to a server that listens. Nothing was sent.
CONNECTS, NOT_CONNECTED = 5, "failed to connect"


def credentials(given):
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    return grpc.ssl_channel_credentials(
        read(given.ca),
        read(given.key_file) if given.key_file else None,
        read(given.cert) if given.cert else None,
    )


def channel(given):
    options = []
    if given.name:
        options.append(("grpc.ssl_target_name_override", given.name))
    if given.ca:
        return grpc.secure_channel(given.address, credentials(given), options)
    return grpc.insecure_channel(given.address, options)


def call(given, method, request, reply, headers):
    out = {"code": "OK", "replies": []}
    with channel(given) as to:
        # a reply that is one message comes as a stream of one
        ask = to.unary_stream(
            "/sessile.v1.SessionService/" + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            for one in ask(request, timeout=given.timeout, metadata=headers):
                out["replies"].append(json_format.MessageToDict(one))
        except grpc.RpcError as error:
            out["code"] = error.code().name
            out["message"] = error.details()
            out["trailers"] = dict(error.trailing_metadata() or ())
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("messages")
    parser.add_argument("address")
    parser.add_argument("method")
    parser.add_argument("json", nargs="?", default="{}")
    for name in ("key", "ca", "cert", "key-file", "name"):
        parser.add_argument("--" + name)
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--timeout", type=float, default=20)
    given = parser.parse_args()
    sys.path.insert(0, given.messages)
    import sessile_pb2

    method = sessile_pb2.DESCRIPTOR.services_by_name["SessionService"].methods_by_name[given.method]
    request = getattr(sessile_pb2, method.input_type.name)()
    json_format.Parse(given.json, request)
    reply = getattr(sessile_pb2, method.output_type.name)
    headers = [tuple(one.split("=", 1)) for one in given.header]
    if given.key:
        headers.append(("authorization", "Bearer " + given.key))
    for _ in range(CONNECTS):
        out = call(given, method.name, request, reply, headers)
        if not out.get("message", "").startswith(NOT_CONNECTED):
            break
        time.sleep(0.2)
    print(json.dumps(out), flush=True)
    os._exit(0)  # without waiting for the threads of grpcio


main()
