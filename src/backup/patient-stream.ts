import { finished, Writable } from "node:stream";
import { type WaitLimit, waitLimit } from "../lib/wait-limit.ts";

/** Small, so that even a reader on a slow line takes one piece in time. */
const PIECE_BYTES = 65_536;

/**
 * Passes everything on to `out`, and fails when nothing is taken for so long: whoever reads may have come to a standstill
 * without closing its end, as behind a connection that is gone.
 */
export function patientStream(out: Writable, patience_ms: number): Writable {
  let limit: WaitLimit | undefined;
  const watch = (): void => {
    limit?.clear();
    limit = waitLimit(patience_ms, () => patient.destroy(standstill(patience_ms)));
  };
  const patient = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const writeFrom = (at: number): void => {
        limit?.clear();
        if (at >= chunk.length) return done();
        watch();
        out.write(chunk.subarray(at, at + PIECE_BYTES), (error) =>
          error ? done(error) : writeFrom(at + PIECE_BYTES),
        );
      };
      writeFrom(0);
    },
    final(done) {
      watch();
      finished(out, done);
      out.end();
    },
    destroy(error, done) {
      limit?.clear();
      out.destroy();
      done(error);
    },
  });
  out.on("error", (error) => patient.destroy(error));
  return patient;
}

function standstill(patience_ms: number): Error {
  return new Error(`nobody has taken anything of it for ${Math.round(patience_ms / 60_000)} minutes`);
}
