/** The runtime reads it once, at its start: how many calls of `fetch` it has under way at the same time; 256 by itself. */
const SETTING = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const MAX_REQUESTS = "8192";

/** Starts this program anew in its place, with room for models, tool servers and webhooks that hang by the hundred. */
export function makeRoomForRequests(): void {
  if (process.env[SETTING] !== undefined) return;
  const script = Bun.main.startsWith("/$bunfs/") ? [] : [...process.execArgv, Bun.main];
  process.execve?.(process.execPath, [process.execPath, ...script, ...process.argv.slice(2)], {
    ...process.env,
    [SETTING]: MAX_REQUESTS,
  });
}
