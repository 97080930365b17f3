import { openManyRequests } from "./config/runtime.ts";

// Before anything else is loaded, as it loads everything again.
if (process.argv[2] === "serve") await openManyRequests();
await import("./cli/program.ts");
