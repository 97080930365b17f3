import type { App } from "../app.ts";
import { INTEGRATION_KINDS, INTEGRATIONS } from "../config/integrations.ts";
import { type Scope, scopeOf } from "../db/inbox-columns.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { closestName } from "../lib/closest-name.ts";
import type { FailureReason } from "../reasons.ts";
import {
  NO_TARGETS,
  type Target,
  targetCalled,
  type Targets,
  targetsOf,
} from "../resources/connections/targets.ts";
import { MEMORY_TARGET } from "../trust/guard/guard.ts";
import { integrationCalled } from "../trust/target-names.ts";

/** Why a run cannot be done; null if it can. */
export type Refusal = { reason: FailureReason; error: string } | null;

/** What the sender of a message may use in this inbox. */
interface Reach extends Targets {
  authority: MessageRow["authority"];
  scope: Scope | null;
}

export async function reachOf(app: App, { authority }: MessageRow, inbox: InboxRow): Promise<Reach> {
  const trusted = authority === "owner" || authority === "listed";
  return { authority, scope: scopeOf(inbox), ...(trusted ? await targetsOf(app.db, inbox) : NO_TARGETS) };
}

export function isTarget({ attached, elsewhere }: Reach, name: string): boolean {
  const names = [...attached.map((target) => target.name), ...elsewhere, ...INTEGRATION_KINDS];
  return name === "ai" || name === MEMORY_TARGET || targetCalled(names, name) !== undefined;
}

interface Aim {
  /** The target by its whole name; null if the instruction names none, or `@ai`. */
  target: string | null;
  attached: Target[];
  scope: Scope | null;
  refusal: Refusal;
}

/** Which target an instruction is aimed at. */
export function aimOf(app: App, { authority, scope, attached, elsewhere }: Reach, asked: string | null): Aim {
  const plain = asked === null || asked === "ai";
  if (plain) return { target: null, attached, scope, refusal: null };
  const powers = app.guard.powersOf({ ...ANY, scope, authority });
  const names = attached.map(({ name }) => name);
  // The name is looked up among all targets of the inbox, so that its meaning does not depend on what the scope allows.
  const target = targetCalled(names, asked);
  if (target !== undefined && powers.mayUse(target)) return { target, attached, scope, refusal: null };
  const memory = app.guard
    .powersOf({ ...ANY, scope, authority, target: MEMORY_TARGET })
    .mayUse(MEMORY_TARGET);
  if (memory && asked === MEMORY_TARGET && targetCalled([...names, ...elsewhere], asked) === undefined)
    return { target: asked, attached, scope, refusal: null };
  const available = [...(memory ? [MEMORY_TARGET] : []), ...names.filter(powers.mayUse)];
  const hindrance = target === undefined ? elsewhereOf(asked, elsewhere) : NOT_ALLOWED;
  return { target: asked, attached, scope, refusal: refusalOf(asked, hindrance, available) };
}

const NOT_ALLOWED = "it is not ticked on its page under “Tools”";

/** The reason if the name is that of a tool server which only other inboxes have; else null. */
function elsewhereOf(asked: string, elsewhere: string[]): string | null {
  return targetCalled(elsewhere, asked) === undefined ? null : NOT_ATTACHED;
}

const NOT_ATTACHED = "this tool server is not ticked on its page under “Tools”";

const ANY = { target: null, tools: true, allow_destructive: false };

function refusalOf(asked: string, hindrance: string | null, available: string[]): Refusal {
  const list = `Available: ${["ai", ...available].map((name) => `@${name}`).join(", ")}.`;
  if (hindrance !== null) {
    const error = `@${asked} may not be used in this inbox: ${hindrance}. ${list}`;
    return { reason: "target_not_allowed", error };
  }
  const called = integrationCalled(asked) ?? asked;
  const kind = INTEGRATION_KINDS.find((one) => one === called);
  if (kind === undefined) {
    const near = closestName(
      asked,
      available.map((name) => name.replace(/^mcp:/, "")),
    );
    const meant = near === undefined ? "" : ` Did you mean @${near}?`;
    const error = `Unknown target @${asked}.${meant} ${list} If it is no target but a word, write \\@${asked}.`;
    return { reason: "unknown_target", error };
  }
  const { label } = INTEGRATIONS[kind];
  const mend = `Connect ${label} on the page “Connections”, by signing in there or with a token of yours.`;
  return { reason: "target_not_connected", error: `Nothing is connected as @${asked}. ${mend} ${list}` };
}
