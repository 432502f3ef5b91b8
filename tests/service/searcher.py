#!/usr/bin/python3
"""searcher.py: searches at several servers, one after the other, as whichever user is named.

    searcher.py MESSAGES SECRET ADDRESS...

MESSAGES is the folder with sessile_pb2.py. Each line that it reads is "SERVER USER": the number of
an address, from 0, and who searches there, by a token that is signed with SECRET (HS256, key
"test"). It answers each with one line: the code, the rule that refused or "-", how many
milliseconds the call took, and what the server says.
"""
import base64
import hashlib
import hmac
import json
import sys
import time

import grpc

PATIENCE = 20  # seconds; a call that takes longer is DEADLINE_EXCEEDED


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(user, secret):
    claims = {"iss": "https://id.example", "aud": "sessile", "sub": user, "roles": ["editor"]}
    claims["exp"] = int(time.time()) + 600
    head = base64url(b'{"alg":"HS256","kid":"test"}')
    signed = head + b"." + base64url(json.dumps(claims).encode())
    mac = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return (signed + b"." + base64url(mac)).decode()


def search(call, request, user, secret):
    try:
        for _ in call(request, timeout=PATIENCE,
                      metadata=[("authorization", "Bearer " + token(user, secret))]):
            pass
        return "OK", "-", ""
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        return error.code().name, trailers.get("sessile-rule", "-"), error.details()


def main():
    messages, secret, addresses = sys.argv[1], sys.argv[2], sys.argv[3:]
    sys.path.insert(0, messages)
    import sessile_pb2

    calls = [
        grpc.insecure_channel(address).unary_stream(
            "/sessile.v1.SessionService/Search",
            request_serializer=sessile_pb2.SearchRequest.SerializeToString,
            response_deserializer=sessile_pb2.Found.FromString,
        )
        for address in addresses
    ]
    request = sessile_pb2.SearchRequest(text="nothing")
    for line in sys.stdin:
        server, user = line.split()
        begin = time.monotonic()
        code, rule, why = search(calls[int(server)], request, user, secret)
        print(code, rule, int((time.monotonic() - begin) * 1000), why, flush=True)


main()
