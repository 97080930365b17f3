import type { App } from "../app.ts";

/** Counts what a model has read and written, for the figures of the server; null where its provider does not say. */
export function countTokens(app: App, usage: { input_tokens: number; output_tokens: number } | null): void {
  const { input_tokens = 0, output_tokens = 0 } = usage ?? {};
  app.metrics.count("mailwright_model_tokens_total", { direction: "input" }, input_tokens);
  app.metrics.count("mailwright_model_tokens_total", { direction: "output" }, output_tokens);
}
