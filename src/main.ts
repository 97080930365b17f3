import { openManyRequests } from "./config/runtime.ts";

// Comes before anything else is loaded, because it begins the program anew.
if (process.argv[2] === "serve") await openManyRequests();
await import("./cli/program.ts");
