// tiktoken.mjs: what the npm package tiktoken makes of texts.
//
//     node tiktoken.mjs golden PROGRAM   the hashes of tiktoken.txt, of the texts PROGRAM prints
//     node tiktoken.mjs ids ENCODING FILE   the ids of each text in FILE, a line each
//
// The package is looked for as node does (NODE_PATH counts). FILE has texts one after the other,
// each a size of 32 bits, the lowest byte first, and its bytes.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(resolve('package.json'));
const { get_encoding } = require('tiktoken');

// The texts of a buffer from `at` on, `count` of them or all.
function* texts(buffer, at, count) {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    for (let n = 0; count === undefined ? at < buffer.length : n < count; n++) {
        const size = buffer.readUInt32LE(at);
        yield [decoder.decode(buffer.subarray(at + 4, at + 4 + size)), at + 4 + size];
        at += 4 + size;
    }
}

// FNV-1a of 64 bits over numbers of 32, in halves of 32 bits: BigInt is too slow.
function hasher() {
    let high = 0xcbf29ce4, low = 0x84222325;
    return {
        number(n) {
            for (let k = 0; k < 4; k++) {
                low = (low ^ (n >>> (8 * k) & 0xff)) >>> 0;
                // times 0x100000001b3
                const product = (low & 0xffff) * 0x1b3;
                const upper = (low >>> 16) * 0x1b3 + Math.floor(product / 65536);
                high = (Math.imul(high, 0x1b3) + low * 256 + Math.floor(upper / 65536)) >>> 0;
                low = (((upper & 0xffff) << 16) | (product & 0xffff)) >>> 0;
            }
        },
        text: () => [high, low].map(n => n.toString(16).padStart(8, '0')).join(''),
    };
}

function golden(program) {
    const all = execFileSync(program, ['texts'], { maxBuffer: 1 << 30 });
    for (const name of ['cl100k_base', 'o200k_base']) {
        const encoding = get_encoding(name);
        for (let at = 0; at < all.length;) {
            const line = all.indexOf(10, at);
            const [group, count] = all.toString('latin1', at, line).split(' ');
            const hash = hasher();
            at = line + 1;
            for (const [text, next] of texts(all, at, Number(count))) {
                const ids = encoding.encode_ordinary(text);
                hash.number(ids.length);
                ids.forEach(hash.number);
                at = next;
            }
            console.log(name, group, hash.text());
        }
        encoding.free();
    }
}

function ids(name, file) {
    const encoding = get_encoding(name), lines = [];
    for (const [text] of texts(readFileSync(file), 0))
        lines.push(Array.from(encoding.encode_ordinary(text)).join(' '));
    process.stdout.write(lines.join('\n') + '\n');
}

const [command, ...rest] = process.argv.slice(2);
if (command === 'golden') golden(...rest);
else if (command === 'ids') ids(...rest);
else throw new Error('golden PROGRAM, or ids ENCODING FILE');
