import { ownMs } from "../lib/processor-time.ts";
import { answerEach } from "../lib/worker-says.ts";
import { readFile } from "./read-file.ts";
import type { FileToRead } from "./reading.ts";
import type { WorkerReading } from "./reader.ts";

answerEach(async (file: FileToRead, onLoaded) => {
  let began_ms = ownMs();
  const reading = await readFile(file, () => {
    onLoaded();
    began_ms = ownMs();
  });
  const buffers = reading.image ? [reading.image.bytes.buffer as ArrayBuffer] : [];
  const output: WorkerReading = { reading, took_ms: ownMs() - began_ms };
  return { output, buffers };
});
