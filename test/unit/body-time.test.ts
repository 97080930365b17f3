import { expect, jest, test } from "bun:test";
import { AppError } from "../../src/errors.ts";
import { readBody } from "../../src/http/body.ts";
import { testApp } from "../support/app.ts";
import { MINUTE_MS } from "../../src/lib/durations.ts";

/** A request whose body begins, and goes on when it is told to. */
function dripping(length?: number) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  void writer.write(Buffer.from("{")).catch(() => undefined);
  const request = new Request("http://mw.test/contexts", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(length === undefined ? {} : { "content-length": String(length) }),
    },
    body: readable,
    duplex: "half",
  });
  const finish = async (): Promise<void> => {
    await writer.write(Buffer.from("}"));
    await writer.close();
  };
  return { request, finish };
}

async function outcome(body: Promise<unknown>): Promise<unknown> {
  try {
    return await body;
  } catch (error) {
    return error instanceof AppError ? error.code : error;
  }
}

test.each([
  ["says its length", 2, MINUTE_MS + 1_000],
  ["does not say its length", undefined, MINUTE_MS + 16_000],
])("a body that %s has so much time and no more", async (_name, length, allowed) => {
  await using t = await testApp();
  jest.useFakeTimers();
  try {
    const late = dripping(length);
    const refused = outcome(readBody({ app: t.app, request: late.request, who: "ann" }));
    const timely = dripping(length);
    const taken = outcome(readBody({ app: t.app, request: timely.request, who: "ann" }));
    jest.advanceTimersByTime(allowed - 1);
    await timely.finish();
    expect(await taken).toEqual({});
    jest.advanceTimersByTime(1);
    expect(await refused).toBe("request_timeout");
  } finally {
    jest.useRealTimers();
  }
});
