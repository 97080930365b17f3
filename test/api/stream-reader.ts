import { createHttp } from "../../src/api.ts";
import type { TestApp } from "../support/app.ts";

export interface StreamEvent {
  event: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever the server said
  data: any;
}

export interface StreamReader {
  response: Response;
  /** The next event; undefined when the stream has ended. */
  next(): Promise<StreamEvent | undefined>;
  /** Goes away, as a browser does. */
  leave(): Promise<void>;
}

/** Opens the stream of messages with these headers, and waits for its first words. */
export async function openStream(t: TestApp, headers: Record<string, string>): Promise<StreamReader> {
  const http = createHttp(t.app, { ready: async () => ({}) });
  const response = await http.handle(new Request("http://mw.test/messages/stream", { headers }));
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  const block = async (): Promise<string | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const found = text.slice(0, end);
        text = text.slice(end + 2);
        return found;
      }
      const { value, done } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
    }
  };
  await block();
  return {
    response,
    async next() {
      for (;;) {
        const words = await block();
        if (words === undefined) return undefined;
        const event = /^event: (.*)$/m.exec(words)?.[1];
        const data = /^data: (.*)$/m.exec(words)?.[1];
        if (event !== undefined) return { event, data: JSON.parse(data ?? "null") };
      }
    },
    leave: () => reader.cancel(),
  };
}
