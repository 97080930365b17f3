import { expect, test } from "bun:test";
import { byteStreamOf } from "../../src/net/byte-stream.ts";

/** Yields what `more` resolves to, once it does, and then ends. */
function streamFor(more: Promise<Uint8Array | undefined>) {
  const errors: unknown[] = [];
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("begun");
    const part = await more;
    if (part) yield part;
  }
  const stream = byteStreamOf(parts(), { onError: (error) => errors.push(error), onLeave: () => undefined });
  return { reader: stream.getReader(), errors };
}

test.each([Buffer.from("more"), undefined])(
  "what comes for a reader who has left is no error: %s",
  async (part) => {
    const more = Promise.withResolvers<Uint8Array | undefined>();
    const { reader, errors } = streamFor(more.promise);
    await reader.read();
    const waiting = reader.read();
    await reader.cancel();
    more.resolve(part);
    await waiting;
    await Bun.sleep(1);
    expect(errors).toEqual([]);
  },
);

test("a fault of the generator is told, and ends the stream", async () => {
  const { reader, errors } = streamFor(Promise.reject(new Error("gone")));
  await reader.read();
  await expect(reader.read()).rejects.toThrow("gone");
  expect(errors).toMatchObject([{ message: "gone" }]);
});
