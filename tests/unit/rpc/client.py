"""client.py ADDRESS CASE [CA]: gRPC's reference core as a client of echo.c.

Methods are called by their names, with bytes as messages: nothing is generated. Exits 0 when
what was seen is right, else says what was not.
"""
import sys
import threading
import time

import grpc

address, case = sys.argv[1], sys.argv[2]
options = [
    ('grpc.max_receive_message_length', 32 << 20),
    ('grpc.max_send_message_length', 32 << 20),
]
if len(sys.argv) > 3:
    with open(sys.argv[3], 'rb') as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    channel = grpc.secure_channel(address, credentials, options)
else:
    channel = grpc.insecure_channel(address, options)


def same(message):
    return message


def unary(method):
    return channel.unary_unary('/t.Echo/' + method, same, same)


def from_server(method):
    return channel.unary_stream('/t.Echo/' + method, same, same)


def both(method):
    return channel.stream_stream('/t.Echo/' + method, same, same)


def status_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return 'OK', ''


def case_unary():
    assert unary('Unary')(b'hello') == b'hello'
    assert unary('Unary')(b'') == b''
    assert unary('Later')(b'from another thread') == b'from another thread'


def case_metadata():
    sent = [('x-text', 'a, b'), ('x-bytes-bin', bytes(range(256))), ('x-text', 'again')]
    _, call = unary('Unary').with_call(b'', metadata=sent)
    got = [(k, v) for k, v in call.trailing_metadata()]
    assert got == sent, got


def case_large():
    message = bytes(range(256)) * (4 << 12)
    assert unary('Unary')(message) == message


def case_many():
    for size in (600, 20000, 500000):
        calls = [unary('Unary').future(b'%02d' % i * size) for i in range(64)]
        for i, call in enumerate(calls):
            assert call.result() == b'%02d' % i * size


def case_server_stream():
    got = list(from_server('Count')(b'10 100000'))
    assert got == [bytes(100000)] * 10
    assert sum(map(len, from_server('Count')(b'20 1000000'))) == 20000000


def case_both_streams():
    answered = threading.Event()

    def ask():
        for i in range(20):
            answered.clear()
            yield b'%d' % i * (i * 1000)
            assert answered.wait(60)

    n = 0
    for i, message in enumerate(both('Stream')(ask())):
        assert message == b'%d' % i * (i * 1000)
        n += 1
        answered.set()
    assert n == 20


def case_deadline():
    code, _ = status_of(lambda: unary('Silent')(b'', timeout=0.2))
    assert code == 'DEADLINE_EXCEEDED', code


def case_cancel():
    call = unary('Silent').future(b'')
    time.sleep(0.2)
    call.cancel()
    assert call.cancelled()


def case_statuses():
    for code in range(1, 17):
        text = 'größe, 日本語: 100% & %41 "x"'
        name, details = status_of(lambda: unary('Fail')(('%d %s' % (code, text)).encode()))
        assert details == text, details
        assert grpc.StatusCode[name].value[0] == code, name
    assert status_of(lambda: unary('Fail')(b'5 '))[0] == 'NOT_FOUND'


def case_refusals():
    got = status_of(lambda: channel.unary_unary('/no/such', same, same)(b''))
    assert got[0] == 'UNIMPLEMENTED', got
    got = status_of(lambda: unary('Unary')(bytes(9 << 20)))
    assert got[0] == 'RESOURCE_EXHAUSTED', got
    got = status_of(lambda: unary('Unary')(bytes(1000), compression=grpc.Compression.Gzip))
    assert got[0] == 'UNIMPLEMENTED' and 'identity' in got[1], got
    got = status_of(lambda: unary('Unary')(b'', metadata=[('x-large', 'x' * 20000)]))
    assert got[0] == 'RESOURCE_EXHAUSTED', got
    assert unary('Unary')(b'still there') == b'still there'


def case_early():
    def forever():
        yield b'1'
        time.sleep(20)
        yield b'2'

    began = time.time()
    got = status_of(lambda: list(both('Early')(forever())))
    assert got == ('FAILED_PRECONDITION', 'early'), got
    assert time.time() - began < 15


def case_peer():
    answer = unary('Peer')(b'').decode()
    host = answer.split(' ')
    assert host[0].startswith('127.0.0.1:'), answer
    assert host[1] == ('1' if len(sys.argv) > 3 else '0'), answer


globals()['case_' + case]()
