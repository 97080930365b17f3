/**
 * Takes away what `scripts/run-tests.ts` says to the allocator of the processes that run tests: the servers which they
 * start, some of whose memory is measured, have the allocator of everybody.
 */
delete process.env["MIMALLOC_PURGE_DELAY"];
