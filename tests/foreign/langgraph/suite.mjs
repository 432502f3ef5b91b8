// suite.mjs: runs conformance.mjs over a store, and prints TAP.

import { startVitest } from "vitest/node";

/** judged: "ram:", "files" or "sqlite". */
export async function judge(judged) {
  process.env.JUDGED = judged;
  const vitest = await startVitest("test", [], {
    watch: false, root: import.meta.dirname, include: ["conformance.mjs"], globals: true,
    reporters: ["tap-flat"], testTimeout: 60000, hookTimeout: 60000, maxWorkers: 1,
  });
  await vitest.close();
}
