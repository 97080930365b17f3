/**
 * Takes away what `scripts/run-tests.ts` says to the runtime of the processes that run tests: the servers which they
 * start, some of which are measured, run as everybody's do.
 */
for (const name of Object.keys(process.env))
  if (/^(?:MIMALLOC_PURGE_DELAY|BUN_GC_|BUN_JSC_)/.test(name)) delete process.env[name];
