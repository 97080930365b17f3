import type { App } from "../app.ts";
import {
  type OpenConnection,
  openConnectionNamed,
  openConnectionOf,
} from "../resources/connections/connections.ts";
import { AppError } from "../errors.ts";
import type { Ending, Run } from "./close.ts";
import { warningStep } from "./steps.ts";

const NO_CONNECTION = "Inbox has no LLM connection";
const NO_CONNECTION_FIX =
  "Choose one on the page of the inbox in the dashboard (for programs: POST /connections, then default_connection_id of the inbox), and send the mail again.";

const GONE =
  "The model connection that a rule names is gone, so that of the inbox was asked. Choose another one in the rule.";

/** The model connection of an inbox, or, if it has none that can be used, the ending of the run. */
export async function findConnection(app: App, run: Run): Promise<OpenConnection | Ending> {
  const { inbox, message, settings } = run;
  const { connection: name } = settings;
  try {
    const named = name === null ? undefined : await openConnectionNamed(app, inbox.user_id, name);
    const missing = name === null || named ? null : missingOf(name, run);
    if (missing) return missing;
    const found = named ?? (await openConnectionOf(app, inbox));
    if (found) return withModel(app, found, settings.model);
    // The page on which an inbox is tested offers the mend itself.
    const error = message.source === "test" ? NO_CONNECTION : `${NO_CONNECTION}. ${NO_CONNECTION_FIX}`;
    return { state: "failed", reason: "no_provider", error };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return {
      state: "failed",
      reason: "connection_unreadable",
      error: `${error.message} ${error.extras.fix ?? ""}`,
    };
  }
}

/** The ending of a run that names a connection which is not there; null where a rule names it, which is told. */
function missingOf(name: string, { ruled, steps }: Run): Ending | null {
  if (name !== ruled.do.connection_id)
    return { state: "failed", reason: "unknown_connection", error: unknownName(name) };
  steps.push({ ...warningStep(GONE), to_strangers: "" });
  return null;
}

/** Has a connection ask another model. Whoever pays for a connection says which models may be asked there. */
function withModel(app: App, connection: OpenConnection, model: string | null): OpenConnection | Ending {
  if (model === null) return connection;
  const allowed = [...new Set([connection.model, ...app.config.llm.models])].filter(Boolean);
  if (!connection.trusted || allowed.includes(model)) return { ...connection, model };
  const names = allowed.map((name) => `"${name}"`).join(", ") || "no model to choose from";
  const error = `The model "${model}" is not allowed on the connection of this server, which has ${names}. ${OWN_MODEL_FIX}`;
  return { state: "failed", reason: "model_not_allowed", error };
}

const OWN_MODEL_FIX =
  "Leave --model out, or make a connection of your own with POST /connections and name it in --connection.";

function unknownName(name: string): string {
  return `There is no model connection called "${name}". GET /connections lists yours.`;
}
