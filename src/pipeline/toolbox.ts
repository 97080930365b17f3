import type { ToolOffer } from "../ai/llm-messages.ts";
import type { MessageRow } from "../db/schema.ts";
import type { Tool, ToolListing, ToolOutcome } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import { withoutSignInCode } from "../resources/accounts/strike-code.ts";
import { mcpServerOf } from "../resources/connections/mcp-server.ts";
import type { Target } from "../resources/connections/targets.ts";
import { AppError } from "../errors.ts";
import { freshToken } from "../resources/integrations/tokens.ts";
import { integrationTools } from "../resources/integrations/tools.ts";
import { stripHiddenCharacters } from "../trust/own-words/hidden-characters.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { workOnText } from "./text-work.ts";
import { sha256 } from "../lib/sha256.ts";

/** As many tools as models keep apart well. Interfaces take 128, and one of these is our own. */
const MAX_TOOLS = 127;
/** The longest name and description of a tool that the chat interface takes. */
const MAX_OFFER_NAME_CHARS = 64;
const MAX_DESCRIPTION_CHARS = 1_000;

/** A tool under the name that the model calls it by. */
export interface OfferedTool {
  offer: ToolOffer;
  tool: Tool;
}

export interface Toolbox {
  tools: OfferedTool[];
  /** By target, a sentence about tools that should be there and are not. */
  missing: Map<string, string>;
  /** How many tools were left out because there were too many. */
  left_out: number;
}

type Leading = Pick<Target, "name" | "connection"> & {
  /** Whether a tool server is asked for its tools even if they are known from a moment ago. */
  anew?: boolean;
};

/** Asks every given target for its tools, at the same time; one that fails takes nothing from the others. */
export async function openToolbox(app: App, targets: Leading[], signal: AbortSignal): Promise<Toolbox> {
  const listings = await Promise.all(
    targets.map(async (target) => ({ name: target.name, listing: await listTools(app, target, signal) })),
  );
  const missing = new Map<string, string>();
  const tools: Tool[] = [];
  let left_out = 0;
  for (const { name, listing } of listings) {
    if (listing.ok) {
      tools.push(...listing.tools);
      left_out += listing.left_out;
    } else missing.set(name, listing.message);
  }
  return {
    tools: offersOf(tools.slice(0, MAX_TOOLS)),
    missing,
    left_out: left_out + Math.max(0, tools.length - MAX_TOOLS),
  };
}

/** Tools under names that all differ, also from the names of `others`. */
export function offersOf(tools: Tool[], others: OfferedTool[] = []): OfferedTool[] {
  const taken = new Set(others.map(({ offer }) => offer.name));
  return tools.map((tool) => {
    const name = offerName(tool, taken);
    taken.add(name);
    return { tool, offer: { name, description: descriptionOf(tool), parameters: tool.parameters } };
  });
}

/** What a tool answers, without the code that signs in to the account of the message. */
export async function withoutCode(
  app: App,
  message: MessageRow,
  answer: Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const from = sourceOf(message);
  return withoutSignInCode(app, message, await answer, {
    numbers: (texts) => workOnText(app, "numbers", { texts }, from),
    struck: (texts, code) => workOnText(app, "struck", { texts, code }, from),
  });
}

async function listTools(
  app: App,
  { name, connection, anew }: Leading,
  signal: AbortSignal,
): Promise<ToolListing> {
  try {
    if (connection.kind !== "mcp") return { ok: true, tools: integrationTools(app, connection), left_out: 0 };
    const server = mcpServerOf(app, connection, (refused) => freshToken(app, connection.id, refused));
    return await app.mcp.listTools({ ...server, target: name }, signal, anew);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ok: false, message: [error.message, error.extras.fix].filter(Boolean).join(" ") };
  }
}

/**
 * The name that the model calls a tool by, such as `calendar__create_event`: the model should know where a tool
 * belongs.
 */
function offerName({ target, name }: Tool, taken: Set<string>): string {
  const plain = `${target.replace(/^mcp:/, "")}__${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  let unique = plain;
  for (let nth = 0; unique.length > MAX_OFFER_NAME_CHARS || taken.has(unique); nth += 1) {
    const mark = sha256(`${target} ${name} ${nth}`, "hex").slice(0, 8);
    unique = `${plain.slice(0, MAX_OFFER_NAME_CHARS - mark.length - 1)}_${mark}`;
  }
  return unique;
}

/** The description of a tool. One by others is marked as theirs: nothing in it is an instruction. */
function descriptionOf({ foreign, description, target }: Tool): string {
  if (!foreign) return description;
  const words = stripHiddenCharacters(description).text.slice(0, MAX_DESCRIPTION_CHARS);
  return `As ${target} describes it: ${words}`;
}
