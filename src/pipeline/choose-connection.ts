import type { App } from "../app.ts";
import {
  type OpenConnection,
  openConnectionNamed,
  openConnectionOf,
} from "../resources/connections/connections.ts";
import { isModelKind } from "../resources/connections/kinds.ts";
import { closestName } from "../lib/closest-name.ts";
import { AppError, fullText } from "../errors.ts";
import type { Ending, Run } from "./close.ts";
import type { RunSettings } from "./settings.ts";

const MOST_NAMED = 20;

const NO_CONNECTION = "This inbox has no model";
const NO_CONNECTION_FIX =
  "Choose one on the page of the inbox, under “Settings”, and have the message tried again.";

const GONE = (rule: string): string =>
  `The rule “${rule}” names a model connection that is not there any more. Choose another one in the rule, or take it out of the rule, and have the message tried again.`;

/** The model connection of an inbox, or, if it has none that can be used, the ending of the run. */
export async function findConnection(app: App, run: Run): Promise<OpenConnection | Ending> {
  const { inbox, message, settings } = run;
  const { connection: name } = settings;
  try {
    const named = name === null ? undefined : await openConnectionNamed(app, inbox.user_id, name);
    const missing = name === null || named ? null : await missingOf(app, name, run);
    if (missing) return missing;
    const found = named ?? (await openConnectionOf(app, inbox));
    if (found) return withModel(app, found, settings);
    // The page on which an inbox is tested offers the mend itself.
    const error = message.source === "test" ? NO_CONNECTION : `${NO_CONNECTION}. ${NO_CONNECTION_FIX}`;
    return { state: "failed", reason: "no_provider", error };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return {
      state: "failed",
      reason: "connection_unreadable",
      error: fullText(error),
    };
  }
}

/** The ending of a run that names a connection which is not there. No other provider is told what was meant for that one. */
async function missingOf(app: App, name: string, run: Run): Promise<Ending> {
  const rule = run.settings.by_rule.connection;
  const error = rule === undefined ? await unknownName(app, run, name) : GONE(rule);
  return { state: "failed", reason: "unknown_connection", error };
}

/** Has a connection ask another model. Whoever pays for a connection says which models may be asked there. */
function withModel(
  app: App,
  connection: OpenConnection,
  { model, by_rule }: Pick<RunSettings, "model" | "by_rule">,
): OpenConnection | Ending {
  if (model === null) return connection;
  const allowed = [...new Set([connection.model, ...app.config.llm.models])].filter(Boolean);
  if (!connection.trusted || allowed.includes(model)) return { ...connection, model };
  const names = allowed.map((name) => `"${name}"`).join(", ") || "no model to choose from";
  const error = `The model "${model}" is not allowed on the connection of this server, which has ${names}. ${by_rule.model === undefined ? OWN_MODEL_FIX : ruledModelFix(by_rule.model)}`;
  return { state: "failed", reason: "model_not_allowed", error };
}

const OWN_MODEL_FIX =
  "Leave --model out, or make a connection of your own on the page “Connections” and name it in --connection.";

function ruledModelFix(rule: string): string {
  return `The rule “${rule}” asks for it: choose another model in the rule, or a connection of your own beside it.`;
}

/** Compared without regard to case, as the name itself is. */
async function unknownName(app: App, { inbox, message }: Run, name: string): Promise<string> {
  const labels = await modelLabels(app, inbox.user_id);
  const names = labels.map((label) => label.toLowerCase());
  const near = labels[names.indexOf(closestName(name.toLowerCase(), names) ?? "")];
  const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
  const list = labels.map((label) => `"${label}"`).join(", ");
  const yours = list === "" ? " You have none yet." : ` Yours are ${list}.`;
  // What the owner has is the owner's to know.
  const all = message.authority === "owner" ? yours : "";
  return `There is no model connection called "${name}".${meant}${all}`;
}

/** The labels of the account's own model connections, oldest first. */
export async function modelLabels(app: App, user_id: string): Promise<string[]> {
  const rows = await app.db
    .selectFrom("connections")
    .select(["label", "kind"])
    .where("user_id", "=", user_id)
    .orderBy("id")
    .execute();
  return rows.flatMap(({ label, kind }) => (isModelKind(kind) ? [label] : [])).slice(0, MOST_NAMED);
}
