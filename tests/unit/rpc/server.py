"""server.py [CERT KEY]: gRPC's reference core as a server of some methods of echo.h.

Prints its port, and ends when its standard input does.
"""
import sys
import time
from concurrent import futures

import grpc


def unary(request, context):
    context.set_trailing_metadata([m for m in context.invocation_metadata()
                                   if m[0].startswith('x-')])
    return request


def count(request, context):
    n, size = map(int, request.split())
    for _ in range(n):
        yield bytes(size)


def stream(requests, context):
    yield from requests


def fail(request, context):
    code, text = request.decode().split(' ', 1)
    code = [c for c in grpc.StatusCode if c.value[0] == int(code)][0]
    context.abort(code, text)


def silent(request, context):
    while context.is_active():
        time.sleep(0.02)
    return b''


METHODS = {
    '/t.Echo/Unary': grpc.unary_unary_rpc_method_handler(unary),
    '/t.Echo/Count': grpc.unary_stream_rpc_method_handler(count),
    '/t.Echo/Stream': grpc.stream_stream_rpc_method_handler(stream),
    '/t.Echo/Fail': grpc.unary_unary_rpc_method_handler(fail),
    '/t.Echo/Silent': grpc.unary_unary_rpc_method_handler(silent),
}


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return METHODS.get(details.method)


options = [('grpc.max_receive_message_length', 32 << 20)]
server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Handler()], options=options)
if len(sys.argv) > 2:
    with open(sys.argv[1], 'rb') as cert, open(sys.argv[2], 'rb') as key:
        pair = (key.read(), cert.read())
    port = server.add_secure_port('127.0.0.1:0', grpc.ssl_server_credentials([pair]))
else:
    port = server.add_insecure_port('127.0.0.1:0')
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(None)
