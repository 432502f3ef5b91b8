// conformance.mjs: LangChain's suite for checkpointers, and its tests of delta channels, over the
// store that JUDGED names. vitest runs this file; suite.mjs starts it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { SessileSaver } from "./langgraph.mjs";
import { Sessile } from "./sessile.mjs";

const folders = new Map();

const initializer = {
  checkpointerName: `SessileSaver over ${process.env.JUDGED}`,
  createCheckpointer() {
    const judged = process.env.JUDGED;
    const folder = judged === "ram:" ? undefined : mkdtempSync(join(tmpdir(), "judged-"));
    const url = { "ram:": judged, files: folder, sqlite: `sqlite:${folder}/threads.db` }[judged];
    const store = new Sessile({
      command: process.env.SESSILE_BIN, args: ["--store", url],
    });
    const saver = new SessileSaver(store);
    folders.set(saver, folder);
    return saver;
  },
  async destroyCheckpointer(saver) {
    const status = await saver.store.close();
    if (folders.get(saver)) rmSync(folders.get(saver), { recursive: true });
    if (status !== 0) throw new Error(`sessile rpc ended with ${status}`);
  },
};

specTest(initializer);
deltaChannelHistoryTests(initializer);
