// test_files.mjs: the suite over files, each write synced.

import { judge } from "./suite.mjs";

await judge("files");
