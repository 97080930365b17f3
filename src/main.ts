import { moduleAt, WORK } from "./lib/worker.ts";
import { openManyRequests } from "./config/runtime.ts";

// Comes before anything else is loaded, because it begins the program anew.
if (process.argv[2] === WORK) await import(moduleAt(process.argv[3] ?? ""));
else {
  if (process.argv[2] === "serve") await openManyRequests();
  await import("./cli/program.ts");
}
