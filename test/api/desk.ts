import type { ConfigOverrides } from "../../src/config/config.ts";
import type { Caller, TestApp } from "../support/app.ts";
import type { ModelServer } from "../support/model-server.ts";

/** The operator's default model is the stand-in. */
export function modelAt(model: ModelServer, more: ConfigOverrides = {}): ConfigOverrides {
  return { ...more, llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" } };
}

/** An account with one inbox. */
export async function deskOf(
  t: TestApp,
  email = "ada@example.com",
): Promise<{ ada: Caller; inbox_id: string }> {
  const ada = await t.as(email);
  const { body } = await ada.post("/inboxes", {});
  return { ada, inbox_id: body.id };
}
