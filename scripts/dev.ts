/** Runs the server from the sources, anew at each change, and the dashboard with hot reload in front of it: `bun run dev`. */
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const COMMANDS = [
  [process.execPath, "--watch", "src/main.ts", "serve", "--dev"],
  [process.execPath, "node_modules/vite/bin/vite.js", "--config", "src/dashboard/vite.config.ts"],
];

const running = COMMANDS.map((command) =>
  Bun.spawn(command, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] }),
);
process.on("SIGINT", () => {});
await Promise.race(running.map(({ exited }) => exited));
for (const one of running) one.kill("SIGTERM");
await Promise.all(running.map(({ exited }) => exited));
