// tokens.mjs: the tokens of a file as a package of Node counts them, and the processor time it takes (median).
//
//     node tokens.mjs tiktoken|gpt-tokenizer ENCODING FILE
//
// Prints "TOKENS MICROSECONDS"; fails when the package is not there.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(resolve('package.json'));
const [name, encoding, file] = process.argv.slice(2);
const text = readFileSync(file, 'utf8');
let count;
if (name === 'tiktoken') {
    const e = require('tiktoken').get_encoding(encoding);
    count = () => e.encode_ordinary(text).length;
} else {
    // Special tokens in the text are text, as they are to us.
    const { encode } = require(`gpt-tokenizer/encoding/${encoding}`);
    count = () => encode(text, { disallowedSpecial: new Set() }).length;
}

let tokens = count();
const times = [];
for (let n = 0; n < 5; n++) {
    const start = process.cpuUsage();
    tokens = count();
    times.push(process.cpuUsage(start).user);
}
times.sort((a, b) => a - b);
console.log(tokens, times[2]);
