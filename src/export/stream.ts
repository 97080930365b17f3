import type { App } from "../app.ts";

/** What a generator gives, as fast as it is read. Whoever stops reading ends it, and an error of it ends the stream. */
export function streamOf(app: App, parts: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { value, done } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          // The answer has begun: all that can be done is to break it off, which leaves no valid archive.
          app.log.error({ err: error }, "an export broke off");
          controller.error(error);
        }
      },
      cancel: async () => void (await parts.return(undefined)),
    },
    { highWaterMark: 0 },
  );
}
