import { endpointOf, type ModelKind } from "../../ai/providers.ts";
import { nearestNames } from "../../lib/closest-name.ts";
import { quote } from "../../lib/quote.ts";
import { type Finding, PingFault, type PingTarget } from "./ping.ts";
import { apiPingOf, isModelThere } from "./ping-api.ts";

/** The most names of similar models that are told. */
const FEW_MODELS = 6;
const NEAREST = 3;
/** How many characters of names are looked at for more than the chosen one. */
const MAX_LISTED_CHARS = 50_000;

/** Throws PingFault where the provider has no such model. A provider that lists none is not asked. */
export async function refuseMissingModel(
  target: PingTarget,
  chosen: { kind: Exclude<ModelKind, "demo">; model: string },
  { models }: Finding,
): Promise<void> {
  const { kind } = chosen;
  const { model } = endpointOf({ kind, base_url: "", model: chosen.model });
  if (model === "") throw missing(target, `${target.name} needs the name of a model.`, models);
  if (models.some((name) => isSameModel(kind, name, model))) return;
  if (models.length === 0 && kind !== "ollama") return;
  if (await isModelThere(target, apiPingOf(kind), model)) return;
  throw missing(target, `${target.name} has no model "${model}".`, models, model);
}

function isSameModel(kind: ModelKind, listed: string, chosen: string): boolean {
  if (kind === "ollama") return withTag(listed) === withTag(chosen);
  if (kind === "google") return listed === chosen.replace(/^models\//, "");
  // At OpenRouter, the word behind the colon only says how a model is served.
  return listed === chosen || (kind === "openrouter" && listed === withoutTag(chosen));
}

/** A name without a tag means the tag `latest`, at Ollama. */
function withTag(name: string): string {
  return withoutTag(name) === name ? `${name}:latest` : name;
}

/** A name without its tag. A colon in front of a slash belongs to the port of a registry. */
function withoutTag(name: string): string {
  const colon = name.lastIndexOf(":");
  return colon > name.lastIndexOf("/") ? name.slice(0, colon) : name;
}

/** Returns the first of many names: a server may list as many as it likes, and whatever else is done takes longer with each. */
export function firstOf(names: string[]): string[] {
  let chars = 0;
  const over = names.findIndex((name) => (chars += name.length) > MAX_LISTED_CHARS);
  return over === -1 ? names : names.slice(0, over);
}

function missing(target: PingTarget, found: string, models: string[], model = ""): PingFault {
  return new PingFault("model_not_found", `${found} ${offerOf(models, model)}`, null, { models });
}

function offerOf(models: string[], model: string): string {
  if (models.length === 0) return "It has none at all yet.";
  const few = models.length <= FEW_MODELS;
  if (!few && model === "") return `Choose one of its ${models.length}.`;
  const names = nearestNames(model, firstOf(models), few ? models.length : NEAREST).map((name) =>
    quote(name, []),
  );
  return `${few ? "It has" : "Nearest to it are"} ${names.join(", ")}.`;
}
