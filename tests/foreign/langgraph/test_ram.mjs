// test_ram.mjs: the suite over a store in memory.

import { judge } from "./suite.mjs";

await judge("ram:");
