import { replaceEach } from "../../lib/replace-each.ts";
import type { Site, Tool, ToolOutcome } from "../../trust/guard/tool.ts";
import type { App } from "../../app.ts";
import { INTEGRATION_KINDS, type IntegrationKind } from "../../config/integrations.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { ownBaseUrl } from "../connections/kinds.ts";
import { ApiFault } from "./api-faults.ts";
import {
  type Api,
  type ApiStyle,
  type Ask,
  asker,
  baseOf,
  type Call,
  type IntegrationTool,
  openCall,
  type Told,
} from "./api-request.ts";
import { type Args, textOf } from "./api-arguments.ts";
import { capped } from "./api-text.ts";
import { withoutCalls } from "./codehost-calls.ts";
import { CODEHOST_A, CODEHOST_A_TOOLS } from "./codehost-a-tools.ts";
import { CODEHOST_B, CODEHOST_B_TOOLS } from "./codehost-b-tools.ts";
import { NOTES, NOTES_TOOLS, notesCalled } from "./notes-tools.ts";
import { SHEETS, SHEETS_TOOLS } from "./sheets-tools.ts";

const REQUEST_TIMEOUT_MS = 30_000;
/** The shortest secret that is looked for: a shorter one could stand in any text by chance. */
const MIN_SECRET_CHARS = 8;
/** The shortest header that counts as a secret: many are none, such as the name of an application. */
const MIN_HEADER_CHARS = 16;

interface ToolSet {
  style: ApiStyle;
  tools: IntegrationTool[];
  /** As in `Tool`. */
  of_circle: boolean;
  /** Finds things by a title, where others can give theirs the same one. */
  called?: (title: string, ask: Ask) => Promise<Told>;
}

const SETS: Record<IntegrationKind, ToolSet> = {
  notes: { style: NOTES, tools: NOTES_TOOLS, of_circle: true, called: notesCalled },
  "codehost-a": { style: CODEHOST_A, tools: CODEHOST_A_TOOLS, of_circle: false },
  "codehost-b": { style: CODEHOST_B, tools: CODEHOST_B_TOOLS, of_circle: false },
  sheets: { style: SHEETS, tools: SHEETS_TOOLS, of_circle: false },
};

/** The tools of a connection to an integration; none for another kind. */
export function integrationTools(
  app: App,
  row: ConnectionRow,
  timeout_ms: number = REQUEST_TIMEOUT_MS,
): Tool[] {
  const kind = INTEGRATION_KINDS.find((one) => one === row.kind);
  if (kind === undefined) return [];
  const set = SETS[kind];
  const api = { app, row, style: set.style, timeout_ms };
  const site = siteOf(api);
  return set.tools.map((tool) => ({
    target: row.kind,
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    read_only: tool.read_only,
    destructive: false,
    places: tool.places ?? [],
    of_circle: set.of_circle,
    numbered: tool.numbered,
    inert: inertOf(tool),
    titled: titledOf(api, set, tool),
    site,
    foreign: false,
    async call(args, signal) {
      const outcome = await outcomeOf(api, signal, (call) => tool.run(args, asker(call), call.base));
      if (tool.read_only) delete outcome.unanswered;
      return outcome;
    },
  }));
}

function titledOf(api: Api, { called }: ToolSet, { titled }: IntegrationTool): Tool["titled"] {
  if (called === undefined || titled === undefined) return undefined;
  return {
    args: titled,
    called: (title, signal) => outcomeOf(api, signal, (call) => called(title, asker(call))),
  };
}

function inertOf({ words }: IntegrationTool): Tool["inert"] {
  if (words === undefined) return undefined;
  return (args: Args, trusted_text) => {
    const given = words.filter((name) => typeof args[name] === "string");
    return {
      ...args,
      ...Object.fromEntries(given.map((name) => [name, withoutCalls(textOf(args, name), trusted_text)])),
    };
  };
}

function siteOf({ app, row, style }: Api): Site | undefined {
  if (style.nested === undefined) return undefined;
  const { host } = baseOf(style, row.base_url ?? ownBaseUrl(app, style.kind));
  return { host: host.replace(/^api\.(?=github\.com$|[a-z0-9-]+\.ghe\.com$)/, ""), nested: style.nested };
}

async function outcomeOf(
  api: Api,
  signal: AbortSignal,
  work: (call: Call) => Promise<string | Told>,
): Promise<ToolOutcome> {
  signal.throwIfAborted();
  let call: Call | undefined;
  try {
    call = openCall(api, signal);
    const said = await work(call);
    const { text, ...more }: Told = typeof said === "string" ? { text: said } : said;
    const led = call.redirected ? { read: [null] } : {};
    return { ok: true, text: capped(withoutSecrets(text, call)), files: [], ...led, ...more };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiFault)
      return { ok: false, text: error.message, files: [], ...(call?.changed && { unanswered: true }) };
    if (!(error instanceof AppError)) throw error;
    // The secrets cannot be opened any more.
    return { ok: false, text: `${error.message} Enter the credential of the connection again.`, files: [] };
  }
}

/** The text without the secrets that were sent, since a server must not pass them on by repeating them. */
function withoutSecrets(text: string, { tokens, headers }: Call): string {
  const secrets = [...tokens, ...Object.values(headers).filter((value) => value.length >= MIN_HEADER_CHARS)];
  const sought = secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS);
  return replaceEach(text, sought, "[key]");
}
