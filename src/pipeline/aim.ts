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
import { followsMemory } from "../resources/conversations/conversations.ts";
import { type Asked, FILES_TARGET, type Powers } from "../trust/guard/guard.ts";
import { integrationCalled, MEMORY_TARGET } from "../trust/target-names.ts";
import type { RunInput } from "./input.ts";
import { type StepDraft, warningStep } from "./steps.ts";

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

export interface Aim {
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

interface Granted {
  powers: Powers;
  targets: Target[];
  /** As the column of the message. */
  from_memory: boolean;
  /** What the sender is told where tools are withheld. */
  withheld: StepDraft[];
}

/**
 * What a run may use. What `@memory` has found may be of any inbox of the account, so in a conversation that was told it, and in a
 * digest of mail that quotes it, only the target is offered that the instruction names: the model would else choose by itself
 * whom it tells.
 */
export async function powersFor(
  app: App,
  message: MessageRow,
  {
    aim,
    settings,
    input,
  }: { aim: Aim; settings: Pick<Asked, "tools" | "allow_destructive">; input: RunInput },
): Promise<Granted> {
  const asked = { ...settings, ...aim, authority: message.authority };
  const powers = app.guard.powersOf(asked);
  const targets = aim.attached.filter(({ name }) => powers.mayUse(name));
  const from_memory =
    powers.mayUse(MEMORY_TARGET) ||
    message.from_memory === 1 ||
    input.gathered?.from_memory === true ||
    (await followsMemory(app.db, message));
  const [first] = targets;
  if (!from_memory || aim.target !== null || first === undefined)
    return { powers, targets, from_memory, withheld: [] };
  const less = app.guard.powersOf({ ...asked, target: FILES_TARGET });
  const output = `No tools were offered but that which makes files: what is read here may tell what @memory has found, and that goes only to a tool that you name. Begin with its name, as in @${first.name.replace(/^mcp:/, "")}.`;
  return {
    powers: less,
    targets: targets.filter(({ name }) => less.mayUse(name)),
    from_memory,
    withheld: [warningStep(output)],
  };
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
