// harness.mjs: what judges share: tests that print TAP, and a program that is run.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

export const program = process.env.SESSILE_BIN;

const tests = [];

/** A test; they run one after the other, in the order in which they are written. */
export function test(name, body) {
  tests.push({ name, body });
}

/** Runs `sessile` with these words; its output. */
export function sessile(words, input) {
  const done = spawnSync(program, words, { input: input ?? "", encoding: "utf8" });
  if (done.status !== 0) {
    throw new Error(`sessile ${words.join(" ")}: ${done.stderr}`);
  }
  return done.stdout;
}

/** Runs the snippet of README.md (that of examples/node) which has this text in it; its output. */
export function snippet(part) {
  const text = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
  const found = [...text.matchAll(/```js\n([^]*?)```/g)].filter(([, code]) => code.includes(part));
  if (found.length !== 1) throw new Error(`README.md has ${found.length} snippets with ${part}`);
  writeFileSync(join(import.meta.dirname, "snippet.mjs"), found[0][1]);
  const PATH = dirname(program) + delimiter + process.env.PATH;
  const done = spawnSync(process.execPath, [join(import.meta.dirname, "snippet.mjs")],
    { encoding: "utf8", env: { ...process.env, PATH } });
  if (done.status !== 0) throw new Error(`${part}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** Runs the tests, then finish(), which closes what would keep this process alive. */
export async function run(finish) {
  let failed = 0;
  for (const [i, { name, body }] of tests.entries()) {
    try {
      await body();
      console.log(`ok ${i + 1} - ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${i + 1} - ${name}`);
      console.log(String(error?.stack ?? error).replace(/^/gm, "# "));
    }
  }
  console.log(`1..${tests.length}`);
  await finish?.();
  process.exit(failed ? 1 : 0);
}
