import type { App } from "../app.ts";
import { byteStreamOf } from "../lib/byte-stream.ts";

/** A list that is too long to be read at once, as JSON: `portions` of it are read as fast as they are taken. */
export function streamOfList(app: App, portions: AsyncIterable<object[]>): ReadableStream<Uint8Array> {
  const list = listOf(portions);
  return byteStreamOf(list, {
    // The answer has begun: all that can be done is to break it off, which leaves nothing valid.
    onError: (error) => app.log.error({ err: error }, "a list broke off"),
    onLeave: async () => void (await list.return(undefined)),
  });
}

async function* listOf(portions: AsyncIterable<object[]>): AsyncGenerator<Uint8Array> {
  let mark = "[";
  for await (const portion of portions) {
    if (portion.length === 0) continue;
    yield Buffer.from(mark + portion.map((item) => JSON.stringify(item)).join(","));
    mark = ",";
  }
  yield Buffer.from(mark === "[" ? "[]" : "]");
}
