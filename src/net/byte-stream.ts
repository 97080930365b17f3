/**
 * Streams the output of a generator as fast as it is read. Its error ends the stream and goes to `onError`. When the
 * reader leaves, `onLeave` is called, which is to end the generator.
 */
export function byteStreamOf(
  parts: AsyncGenerator<Uint8Array>,
  { onError, onLeave }: { onError: (error: unknown) => void; onLeave: () => void | Promise<void> },
): ReadableStream<Uint8Array> {
  let left = false;
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { value, done } = await parts.next();
          // A stream that was left is closed already, and to close or fill it again is an error.
          if (left) return;
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          onError(error);
          controller.error(error);
        }
      },
      cancel() {
        left = true;
        return onLeave();
      },
    },
    { highWaterMark: 0 },
  );
}
