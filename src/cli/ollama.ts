export const OLLAMA_URL = "http://127.0.0.1:11434";

/** A running Ollama answers at once, and without one nobody should have to wait. */
const TIMEOUT_MS = 300;

/** Returns the configuration lines for a running Ollama; undefined when none answers at `url`. */
export async function ollamaConfig(url: string): Promise<string[] | undefined> {
  const models = await installedModels(url);
  if (!models) return undefined;
  const model = models[0] ?? "llama3.2";
  const missing = models.length === 0 ? [`# It has no model yet: run "ollama pull ${model}" first.`] : [];
  return [...missing, "[llm]", 'kind = "ollama"', `model = ${JSON.stringify(model)}`];
}

async function installedModels(url: string): Promise<string[] | undefined> {
  try {
    const answer = await fetch(`${url}/api/tags`, { signal: AbortSignal.timeout(TIMEOUT_MS), proxy: false });
    if (!answer.ok) return undefined;
    const { models } = (await answer.json()) as { models?: { name: string }[] };
    return models?.map(({ name }) => name);
  } catch {
    // Nothing listens there, or something else does: the demo needs neither.
    return undefined;
  }
}
