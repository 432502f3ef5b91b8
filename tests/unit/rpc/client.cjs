// client.cjs ADDRESS: @grpc/grpc-js, which has an HTTP/2 of its own, as a client of echo.c.
// Exits 0 when what was seen is right, else says what was not.
'use strict';
const assert = require('assert');
const grpc = require('@grpc/grpc-js');

const options = {'grpc.max_receive_message_length': 32 << 20, 'grpc.max_send_message_length': 32 << 20};
const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure(), options);
const same = (message) => message;
const path = (method) => '/t.Echo/' + method;

function unary(method, message, metadata, callOptions) {
  return new Promise((resolve) => {
    let trailers;
    const call = client.makeUnaryRequest(path(method), same, same, message,
        metadata || new grpc.Metadata(), callOptions || {},
        (error, answer) => setImmediate(() => resolve({error, answer, trailers})));
    call.on('status', (status) => { trailers = status.metadata; });
  });
}

function read(call) {
  return new Promise((resolve, reject) => {
    const got = [];
    call.on('data', (message) => got.push(message));
    call.on('end', () => resolve(got));
    call.on('error', reject);
  });
}

async function main() {
  let got = await unary('Unary', Buffer.from('hello'));
  assert.strictEqual(got.answer.toString(), 'hello');

  const metadata = new grpc.Metadata();
  metadata.set('x-text', 'a text');
  metadata.set('x-bytes-bin', Buffer.from([0, 1, 2, 255]));
  got = await unary('Unary', Buffer.alloc(0), metadata);
  assert.deepStrictEqual(got.trailers.get('x-text'), ['a text']);
  assert.deepStrictEqual(got.trailers.get('x-bytes-bin'), [Buffer.from([0, 1, 2, 255])]);

  const large = Buffer.alloc(4 << 20, 'abcdefg');
  got = await unary('Unary', large);
  assert(got.answer.equals(large));

  const all = await Promise.all([...Array(64).keys()].map((i) => unary('Later', Buffer.from('call ' + i))));
  all.forEach((one, i) => assert.strictEqual(one.answer.toString(), 'call ' + i));

  const counted = await read(client.makeServerStreamRequest(path('Count'), same, same, Buffer.from('20 100000')));
  assert.strictEqual(counted.length, 20);
  assert(counted.every((message) => message.length === 100000));

  const both = client.makeBidiStreamRequest(path('Stream'), same, same);
  const answers = read(both);
  for (let i = 0; i < 10; i++) both.write(Buffer.from('part ' + i));
  both.end();
  assert.deepStrictEqual((await answers).map(String), [...Array(10).keys()].map((i) => 'part ' + i));

  got = await unary('Fail', Buffer.from('9 größe 日本 100%'));
  assert.strictEqual(got.error.code, grpc.status.FAILED_PRECONDITION);
  assert.strictEqual(got.error.details, 'größe 日本 100%');

  got = await unary('Silent', Buffer.alloc(0), null, {deadline: Date.now() + 200});
  assert.strictEqual(got.error.code, grpc.status.DEADLINE_EXCEEDED);

  await new Promise((resolve) => {
    const call = client.makeUnaryRequest(path('Silent'), same, same, Buffer.alloc(0), (error) => {
      assert.strictEqual(error.code, grpc.status.CANCELLED);
      resolve();
    });
    setTimeout(() => call.cancel(), 100);
  });
  client.close();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
