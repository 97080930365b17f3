import type { App } from "../../src/app.ts";
import { indexSome } from "../../src/resources/messages/search/keep-indexed.ts";

/** Indexes all that waits, as the server does soon after. */
export async function indexAll(app: App): Promise<void> {
  while (await indexSome(app));
}
