"""client.py CASE FOLDER PROTO ADDRESS [ADDRESS…]: others' clients of the service.

gRPC's reference core with the classes that protoc makes of sessile.proto (into FOLDER), and
curl. Exits 0 when what was seen is right, else says what was not.
"""
import json
import os
import subprocess
import sys
import threading
import urllib.parse

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

case, folder, proto, addresses = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
subprocess.run(['protoc', '--python_out=' + folder, '-I' + os.path.dirname(proto), proto],
               check=True)
sys.path.insert(0, folder)
import sessile_pb2 as pb  # noqa: E402

channels = [grpc.insecure_channel(a) for a in addresses]
PATH = '/sessile.v1.SessionService/'


def unary(method, request, reply, server=0):
    call = channels[server].unary_unary(PATH + method, request.__class__.SerializeToString,
                                        reply.FromString)
    return call(request, timeout=60)


def append(text, session='s', server=0):
    body = json.dumps({'role': 'user', 'content': text})
    return unary('AppendMessage',
                 pb.AppendRequest(session=pb.Session(id=session), message=pb.Json(text=body)),
                 pb.Written, server).entry


def fill(session):
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id=session)), pb.SessionInfo)
    for i in range(6):
        append('message %d' % i, session)


# ------------------------------------------------------------------ Run

class Answers:
    """The requests of a stream: the first, or a list of them, then what put() gives."""

    def __init__(self, first):
        self.all, self.more = first if isinstance(first, list) else [first], threading.Condition()

    def put(self, request):
        with self.more:
            self.all.append(request)
            self.more.notify()

    def __iter__(self):
        return self

    def __next__(self):
        with self.more:
            assert self.more.wait_for(lambda: self.all, 60)
            one = self.all.pop(0)
        if one is None:
            raise StopIteration
        return one


def compact(session):
    return pb.RunRequest(compact=pb.CompactRequest(
        session=pb.Session(id=session),
        config=pb.RunConfig(policies=[pb.Policy(name='asker')])))


def run(session, server=0):
    requests = Answers(compact(session))
    call = channels[server].stream_stream(PATH + 'Run', pb.RunRequest.SerializeToString,
                                          pb.RunEvent.FromString)
    return requests, call(requests)


def case_run():
    fill('run')
    requests, events = run('run')
    seen = []
    for event in events:
        if event.WhichOneof('what') == 'need':
            asked = json.loads(event.need.request.text)
            seen.append(asked['messages'][0]['content'])
            requests.put(pb.RunRequest(reply=pb.Answer(text='abc'[len(seen) - 1])))
        else:
            outcome = event.outcome
            requests.put(None)
    assert seen == ['1:', '2:a', '3:ab'], seen
    assert outcome.verdict == 'applied' and events.code() == grpc.StatusCode.OK
    got = list(channels[0].unary_stream(PATH + 'GetContext', pb.ContextRequest.SerializeToString,
                                        pb.Messages.FromString)(
        pb.ContextRequest(session=pb.Session(id='run'))))
    assert json.loads(got[0].messages[0].json.text)['content'] == 'abc'


def case_cut():
    for cut in range(3):
        name = 'cut-%d' % cut
        fill(name)
        requests, events = run(name)
        for i in range(cut + 1):
            need = next(events)
            assert need.WhichOneof('what') == 'need'
            if i < cut:
                requests.put(pb.RunRequest(reply=pb.Answer(text='abc'[i])))
        events.cancel()
        requests.put(None)
        session = pb.Session(id=name)
        while not unary('ListPendingRuns', pb.SessionRequest(session=session), pb.PendingRuns,
                        1).runs:
            pass
        for i in range(cut, 3):
            out = unary('Answer', pb.AnswerRequest(session=session,
                                                   answer=pb.Answer(text='abc'[i])),
                        pb.Outcome, 1)
            assert out.verdict == ('applied' if i == 2 else 'pending'), out.verdict


# ------------------------------------------------------------------ events

def case_events():
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id='s')), pb.SessionInfo)
    watch = channels[0].unary_stream(PATH + 'StreamSessionEvents',
                                     pb.EventsRequest.SerializeToString,
                                     pb.SessionEvent.FromString)
    writer = threading.Thread(target=lambda: [append('entry %d' % i) for i in range(300)])
    writer.start()
    seen, cuts = [], 0
    while len(seen) < 301:
        events = watch(pb.EventsRequest(session=pb.Session(id='s'), **{
            'from': pb.Entry(id=len(seen))}))
        for event in events:
            if event.WhichOneof('what') == 'entry':
                assert event.entry.entry == len(seen)
                seen.append(event.entry.json.text)
            if len(seen) % 37 == 0 or len(seen) == 301:
                break
        events.cancel()
        cuts += 1
    writer.join()
    for i, text in enumerate(seen):
        entry = unary('GetEntry', pb.EntryRequest(session=pb.Session(id='s'), entry=i),
                      pb.EntryText)
        assert entry.json.text == text, i
    assert cuts > 5


# ------------------------------------------------------------------ JSON

def curl(path, *options, body=None):
    """The status, the type and the body of a request by curl."""
    argv = ['curl', '-sS', '--max-time', '60', '-w', '\n%{http_code} %{content_type}']
    if body is not None:
        argv += ['-H', 'content-type: application/json', '--data-binary', '@-']
    out = subprocess.run(argv + list(options) + ['http://' + addresses[0] + path],
                         input=body.encode() if body is not None else None,
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    text, _, last = out.rpartition('\n')
    status, _, kind = last.partition(' ')
    return int(status), kind, text


def post(method, request):
    status, kind, text = curl(PATH + method, body=json.dumps(request))
    assert kind == 'application/json', kind
    return status, json.loads(text)


def case_json():
    s = {'id': 'j'}
    assert post('CreateSession', {'session': s})[0] == 200
    message = '{"session":{"id":"j"},"message":{"role":"user",\n "content":"größe",  "n":1.50}}'
    status, _, text = curl(PATH + 'AppendMessage', body=message)
    assert status == 200 and json.loads(text) == {'entry': 1}, text
    # The message is kept token for token.
    status, _, text = curl(PATH + 'GetEntry', body='{"session":{"id":"j"},"entry":1}')
    assert '"n":1.50' in text.replace(' ', ''), text
    # What comes in pieces by gRPC is one object.
    large = 'x' * 700000
    for _ in range(4):
        post('AppendMessage', {'session': s, 'message': {'role': 'user', 'content': large}})
    status, context = post('GetContext', {'session': s})
    assert status == 200 and len(context['messages']) == 5 and context['info'], status
    assert context['messages'][4]['json']['content'] == large
    status, found = post('Search', {'session': s, 'text': 'größe'})
    assert status == 200 and found['found'][0]['entry'] == {'id': 1}, found
    status, found = post('Search', {'session': s, 'text': 'nothing has this'})
    assert status == 200 and found == {}, found
    # Over HTTP/2 as well.
    status, _, _ = curl(PATH + 'ResumeSession', '--http2-prior-knowledge',
                        body='{"session":{"id":"j"}}')
    assert status == 200


def case_errors():
    expected = [
        ('ResumeSession', '{"session":{"id":"none"}}', 404, 'not_found', 'ENOTFOUND'),
        ('ResumeSession', '{"session":{"id":"none"}', 400, 'invalid_argument', 'EINVALID'),
        ('ResumeSession', '{"sesion":{}}', 400, 'invalid_argument', 'EINVALID'),
        ('ResumeSession', '{"session":{"id":"a\\u0000b"}}', 400, 'invalid_argument',
         'EINVALID'),
        ('Run', '{}', 501, 'unimplemented', None),
        ('Nothing', '{}', 404, 'unimplemented', None),
        ('ResumeSession', '', 400, 'invalid_argument', 'EINVALID'),
    ]
    for method, body, http, code, name in expected:
        status, kind, text = curl(PATH + method, body=body)
        error = json.loads(text)
        assert (status, error['code']) == (http, code), (method, body, status, text)
        assert error['message'] and kind == 'application/json'
        assert name is None or error['details']['status'] == name, error
    assert post('CreateSession', {'session': {'id': 'twice'}})[0] == 200
    assert post('CreateSession', {'session': {'id': 'twice'}})[0] == 409
    assert curl(PATH + 'ResumeSession')[0] == 405
    # What is not of sessile.proto, or not served, is not there.
    for other in ('/sessile.v1.RecordService/Store', '/sessile.v1.RecordService/Append',
                  '/grpc.health.v1.Health/Check', '/grpc.health.v1.Health/Watch'):
        assert curl(other, body='{}')[0] == 404, other
    assert curl(PATH + 'ResumeSession', '-X', 'PUT', body='{}')[0] == 405
    assert curl(PATH + 'ResumeSession', '-H', 'content-type: text/plain', '-d', '{}')[0] == 415
    assert curl(PATH + 'ResumeSession', '-H', 'content-encoding: gzip', body='{}')[0] == 415
    assert curl('/v1/events?id=none')[0] == 404
    assert curl('/v1/events?id=twice&id=twice')[0] == 400
    assert curl('/v1/events?id=twice&from=x')[0] == 400
    assert curl('/v1/events?id=twice&from=9')[0] == 400
    assert curl('/v1/events?id=tw%00')[0] == 400
    assert curl('/v1/events')[0] == 400
    assert curl('/healthz')[0] == 200
    assert curl('/healthz', '-d', '')[0] == 405
    assert curl('/')[0] == 404


def server_sent(lines, events):
    """Reads `events` events, as the standard of HTML says."""
    seen, event = [], {'data': []}
    for line in lines:
        line = line.rstrip('\n')
        if line == '':
            seen.append((event.get('id'), event['event'], json.loads('\n'.join(event['data']))))
            event = {'data': []}
            if len(seen) == events:
                break
            continue
        name, _, value = line.partition(': ')
        assert name in ('id', 'event', 'data'), line
        if name == 'data':
            event['data'].append(value)
        else:
            event[name] = value
    return seen


def events_by_curl(query, count, *options):
    argv = ['curl', '-sSN', '--max-time', '60', 'http://' + addresses[0] + '/v1/events' + query]
    with subprocess.Popen(argv + list(options), stdout=subprocess.PIPE,
                          universal_newlines=True) as program:
        seen = server_sent(program.stdout, count)
        program.kill()
    return seen


def case_sse():
    name = 'größe & co'
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id=name)), pb.SessionInfo)
    body = '{"role":"user",\n"content":"two\\nlines",\r\n"more":[1,\r2]}'
    unary('AppendMessage', pb.AppendRequest(session=pb.Session(id=name),
                                            message=pb.Json(text=body)), pb.Written)
    query = '?id=' + urllib.parse.quote_plus(name)
    seen = events_by_curl(query + '&from=0', 3)
    assert [(i, e) for i, e, _ in seen] == [('0', 'entry'), ('1', 'entry'), ('1', 'up_to')], seen
    said = seen[1][2]
    assert said['session'] == {'id': name} and said['entry']['entry'] == 1, said
    assert said['entry']['json']['data']['content'] == 'two\nlines', said
    assert said['entry']['json']['data']['more'] == [1, 2]
    append('later', name)
    seen = events_by_curl(query, 2, '-H', 'last-event-id: ' + seen[2][0])
    assert [(i, e) for i, e, _ in seen] == [('2', 'entry'), ('2', 'up_to')], seen
    # A stream that fails says so.
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id='gone')), pb.SessionInfo)
    threading.Timer(0.5, lambda: unary(
        'DeleteSession', pb.DeleteRequest(session=pb.Session(id='gone')), pb.Deleted)).start()
    seen = events_by_curl('?id=gone', 2)
    assert seen[0][:2] == ('0', 'up_to') and seen[1][1] == 'error', seen
    assert seen[1][2]['code'] == 'not_found', seen
    # Several sessions at once, by POST.
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id='b')), pb.SessionInfo)
    request = {'cursors': [{'session': {'id': name}, 'from': {'id': 2}},
                           {'session': {'id': 'b'}, 'from': {'id': 0}}]}
    seen = events_by_curl('', 4, '-H', 'content-type: application/json', '-d',
                          json.dumps(request))
    entries = sorted((d['session']['id'], d['entry']['entry']) for _, e, d in seen
                     if e == 'entry' and d['entry'].get('entry'))
    assert all(i is None for i, _, _ in seen) and (name, 2) in entries, seen


# ------------------------------------------------------------------ reflection

SERVICES = {'sessile.v1.SessionService', 'sessile.v1.MemoryService', 'sessile.v1.NodeService',
            'grpc.health.v1.Health',
            'grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'}


def reflection(version):
    """The classes of reflection as gRPC publishes it."""
    path = 'grpc/reflection/%s/reflection.proto' % version
    subprocess.run(['protoc', '--python_out=' + folder, '-I/usr/share/grpc-proto', path],
                   check=True)
    sys.path.insert(0, os.path.join(folder, os.path.dirname(path)))
    try:
        return __import__('reflection_pb2')
    finally:
        del sys.path[0], sys.modules['reflection_pb2']


def ask(made, version, requests, metadata=(), end=True):
    """The answers to requests that are sent at once, in a stream that ends or stays."""
    path = '/grpc.reflection.%s.ServerReflection/ServerReflectionInfo' % version
    call = channels[0].stream_stream(path, made.ServerReflectionRequest.SerializeToString,
                                     made.ServerReflectionResponse.FromString)
    sent = Answers([made.ServerReflectionRequest(**r) for r in requests] + [None] * end)
    answers = call(sent, metadata=metadata, timeout=60)
    if end:
        return list(answers)
    return [next(answers) for _ in requests], sent, answers


def symbols(package, messages, enums):
    for e in enums:
        yield package + '.' + e.name
        for value in e.value:
            yield package + '.' + value.name
    for m in messages:
        name = package + '.' + m.name
        yield name
        for f in m.field:
            yield name + '.' + f.name
        yield from symbols(name, m.nested_type, m.enum_type)


def described(made, version):
    """A pool with what the server says of its services."""
    pool = descriptor_pool.DescriptorPool()
    listed = ask(made, version, [{'list_services': ''}])[0]
    names = [s.name for s in listed.list_services_response.service]
    assert set(names) == SERVICES and len(names) == len(SERVICES), names
    files = {}
    for answer in ask(made, version, [{'file_containing_symbol': n} for n in names]):
        for data in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            files[file.name] = file
    for file in files.values():
        pool.Add(file)
    return pool, files


def case_reflection():
    for version in ('v1', 'v1alpha'):
        made = reflection(version)
        pool, files = described(made, version)
        # It is what protoc says of the file, and enough to call a method.
        expected = descriptor_pb2.FileDescriptorProto()
        pb.DESCRIPTOR.CopyToProto(expected)
        ours = files['sessile.proto']
        for message in ours.message_type:
            for field in message.field:
                field.ClearField('json_name')
        for message in expected.message_type:
            for field in message.field:
                field.ClearField('json_name')
        assert ours == expected
        service = pool.FindServiceByName('sessile.v1.SessionService')
        method = service.methods_by_name['CreateSession']
        request = message_factory.MessageFactory(pool).GetPrototype(method.input_type)()
        request.session.id = version
        unary('CreateSession', request, pb.SessionInfo)
        # Each name is found, also when all are asked for before the first answer is read.
        names = list(symbols('sessile.v1', ours.message_type, ours.enum_type))
        names += ['sessile.v1.%s.%s' % (s.name, m.name) for s in ours.service for m in s.method]
        assert len(names) > 300, len(names)
        for i in range(0, len(names), 20):
            some = [{'file_containing_symbol': n} for n in names[i:i + 20]]
            for asked, answer in zip(some, ask(made, version, some)):
                assert answer.original_request == made.ServerReflectionRequest(**asked)
                assert len(answer.file_descriptor_response.file_descriptor_proto) == 1, asked
        by_name = ask(made, version, [{'host': 'h', 'file_by_filename': n} for n in files])
        for name, answer in zip(files, by_name):
            data, = answer.file_descriptor_response.file_descriptor_proto
            assert descriptor_pb2.FileDescriptorProto.FromString(data).name == name
            assert answer.valid_host == 'h'
        # What is not there.
        for name in ('', 'sessile', 'sessile.v1', 'sessile.v1.', 'Session', 'sessile.v1.Sessio',
                     'sessile.v1.Sessions', 'sessile.v1.Session.', 'sessile.v1.Session.nothing',
                     'sessile.v1.Session.id.x', '.sessile.v1.Session'):
            answer, = ask(made, version, [{'file_containing_symbol': name}])
            assert answer.error_response.error_code == 5, (name, answer)
            assert answer.error_response.error_message
        none = [{'file_by_filename': 'other.proto'}, {'file_by_filename': ''},
                {'all_extension_numbers_of_type': 'sessile.v1.Session'},
                {'file_containing_extension': made.ExtensionRequest(containing_type='x')}]
        assert [a.error_response.error_code for a in ask(made, version, none)] == [5] * 4
        assert ask(made, version, [{}])[0].error_response.error_code == 3
        # Many at once, in their order, and then more, one after the other.
        many = [{'host': str(i), 'list_services': '*'} for i in range(1000)]
        answers, sent, call = ask(made, version, many, end=False)
        assert [a.valid_host for a in answers] == [str(i) for i in range(1000)]
        for i in range(3):
            sent.put(made.ServerReflectionRequest(host='more', list_services=''))
            assert next(call).valid_host == 'more'
        sent.put(None)
        assert list(call) == [] and call.code() == grpc.StatusCode.OK
    assert curl('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', body='{}')[0] == 404


def refused_reflection(metadata=()):
    try:
        ask(reflection('v1'), 'v1', [{'list_services': ''}], metadata)
    except grpc.RpcError as error:
        return error.code()
    return None


def case_no_reflection():
    assert refused_reflection() == grpc.StatusCode.UNIMPLEMENTED


def case_no_json():
    assert curl(PATH + 'ResumeSession', body='{"session":{"id":"x"}}')[0] == 404
    assert curl('/v1/events?id=x')[0] == 404
    assert curl('/healthz')[0] == 200
    unary('CreateSession', pb.CreateRequest(session=pb.Session(id='s')), pb.SessionInfo)


def case_guarded():
    status, kind, text = curl(PATH + 'CreateSession', body='{"session":{"id":"g"}}')
    assert status == 401 and json.loads(text)['code'] == 'unauthenticated', text
    # whoever may not call is not told what is wrong with a request that nobody has read
    assert curl(PATH + 'CreateSession', body='{')[0] == 401
    key = ('-H', 'authorization: Bearer ' + os.environ['KEY'])
    assert curl(PATH + 'CreateSession', *key, body='{')[0] == 400
    status, _, text = curl(PATH + 'CreateSession', *key, body='{"session":{"id":"g"}}')
    assert status == 200 and json.loads(text)['session']['user'] == 'ann', text
    status, _, text = curl(PATH + 'ResumeSession', *key,
                           body='{"session":{"id":"g","user":"bob"}}')
    assert status == 403 and json.loads(text)['code'] == 'permission_denied', text
    assert refused_reflection() == grpc.StatusCode.UNAUTHENTICATED
    assert refused_reflection([('authorization', 'Bearer ' + os.environ['KEY'])]) is None
    assert curl('/v1/events?id=g')[0] == 401
    assert curl('/v1/events?id=g&user=bob', *key)[0] == 403
    assert events_by_curl('?id=g&from=0', 1, *key)[0][1] == 'entry'
    assert curl('/healthz')[0] == 200


globals()['case_' + case]()
