// test_sqlite.mjs: the suite over a database.

import { judge } from "./suite.mjs";

await judge("sqlite");
