import type { ChatMessage } from "../ai/llm-messages.ts";
import type { Tool } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { stepName } from "./steps.ts";
import { workOnText } from "./text-work.ts";
import { type EarlierCall, fingerprintOf } from "./tool-journal.ts";

/** The most characters that the model is told of all earlier calls together. */
const MAX_TOLD_CHARS = 50_000;

/**
 * The calls that change something: those that earlier tries of a run have made, and those that this try has asked for.
 */
export interface Journal {
  /** The calls of earlier tries, in the order in which they were begun. */
  earlier: EarlierCall[];
  /** Fingerprints of the earlier calls that this try has asked for again, in the same words or in others. */
  asked: Set<string>;
  /**
   * How often this try has made each call, or was answered with an earlier one; by the fingerprint of the first such
   * call.
   */
  counts: Map<string, number>;
  /** By the same fingerprint, the round of the talk in which a call was answered with the outcome of another call. */
  put_off: Map<string, number>;
  /** By the same fingerprint, the calls of this try that nobody answered. */
  unanswered: Map<string, LostCall>;
}

interface LostCall extends EarlierCall {
  /** The round of the talk in which it was made. */
  round: number;
  /** The round in which another call of its tool was answered with it. */
  stood_in?: number;
  /** The last round in which it was asked for again. */
  repeated?: number;
}

export function journalOf(earlier: EarlierCall[]): Journal {
  return { earlier, asked: new Set(), counts: new Map(), put_off: new Map(), unanswered: new Map() };
}

/** The earlier calls that this try has not asked for again. */
export function notAsked({ earlier, asked }: Journal): EarlierCall[] {
  return earlier.filter(({ fingerprint }) => !asked.has(fingerprint));
}

/**
 * The fingerprints of a call: `first` is what equal calls are counted by, `fingerprint` is that of the next of them.
 */
export function nextCall(
  { counts }: Journal,
  tool: Tool,
  args: Record<string, unknown>,
): { first: string; fingerprint: string } {
  const first = fingerprintOf(tool, args, 0);
  const nth = counts.get(first) ?? 0;
  return { first, fingerprint: nth === 0 ? first : fingerprintOf(tool, args, nth) };
}

export function countCall({ counts }: Journal, first: string): void {
  counts.set(first, (counts.get(first) ?? 0) + 1);
}

/** What the model is told instead of a call being made. */
interface EarlierAnswer {
  /** The earlier call whose outcome stands for the call. */
  call: EarlierCall;
  /** The earlier calls that the model may have meant, `call` first; undefined if `call` is exactly what it asks for. */
  others?: EarlierCall[];
  /** Whether this try has made the call, and nobody answered it; or, in "other" words, may have made it. */
  lost?: "same" | "other";
}

/**
 * The earlier call whose outcome is told instead of making this call in `round` of the talk: the same call, or the next
 * one of the same tool, as a model seldom words a text twice alike. So it is with a call of this try that nobody
 * answered: the same one, and the first other one of its tool that is asked for once the model knows. Undefined if this call is to be made: it is one more than the earlier try had made, or it is asked for once more in
 * a later round, when the model has read why it was not made.
 */
export function earlierAnswer(
  journal: Journal,
  tool: Tool,
  { args, round }: { args: Record<string, unknown>; round: number },
): EarlierAnswer | undefined {
  const { earlier, asked, put_off, unanswered } = journal;
  if (earlier.length === 0 && unanswered.size === 0) return undefined;
  const { first, fingerprint } = nextCall(journal, tool, args);
  const same = earlier.find((call) => call.fingerprint === fingerprint);
  if (same) {
    countCall(journal, first);
    asked.add(fingerprint);
    return { call: same };
  }
  if ((put_off.get(first) ?? round) < round) return undefined;
  const lost = unanswered.get(first);
  if (lost) {
    put_off.set(first, round);
    lost.repeated = round;
    return { call: lost, lost: "same" };
  }
  const reworded = [...unanswered.values()].find((call) => mayMean(call, tool, round));
  if (reworded) {
    put_off.set(first, round);
    reworded.stood_in = round;
    return { call: reworded, lost: "other" };
  }
  const others = notAsked(journal).filter((call) => isDoneBy(tool, call));
  const [call] = others;
  if (call === undefined) return undefined;
  put_off.set(first, round);
  asked.add(call.fingerprint);
  return { call, others };
}

/** Whether a call in `round` may be the one that nobody answered, in other words. Beside that itself it is not. */
function mayMean(call: LostCall, tool: Tool, round: number): boolean {
  return call.round < round && call.stood_in === undefined && call.repeated !== round && isDoneBy(tool, call);
}

/** Whether an earlier call of this tool may have taken effect. One that failed cannot be done twice. */
function isDoneBy({ target, name }: Tool, { step, ok, unknown = false }: EarlierCall): boolean {
  return step?.server === target && step.name === stepName(name) && (ok || unknown);
}

/**
 * The messages for a run that is done again. They end with what earlier tries have called, so that the model goes on
 * from there.
 */
export async function withEarlierCalls(
  app: App,
  earlier: EarlierCall[],
  { messages, nonce, from }: { messages: ChatMessage[]; nonce: string; from: ReadFor },
): Promise<ChatMessage[]> {
  const last = messages.at(-1);
  if (earlier.length === 0 || last === undefined) return messages;
  const told = { material: storiesOf(earlier), nonce, max_chars: 2 * MAX_TOLD_CHARS };
  const fenced = await workOnText(app, "fence", told, from);
  if (fenced === undefined) return messages;
  return [
    ...messages.slice(0, -1),
    { ...last, content: [last.content, BEGUN_BEFORE, fenced.text].join("\n\n") },
  ];
}

const BEGUN_BEFORE =
  "You have begun this work before and were interrupted. The calls below were made then, with these results, and stay made: go on from there, and make none of them again.";

/** Says which calls they were and what came of them, for the model. Untrusted. */
export function storiesOf(calls: EarlierCall[]): string {
  const most = Math.floor(MAX_TOLD_CHARS / calls.length);
  return calls.map((call) => storyOf(call).slice(0, most)).join("\n\n");
}

function storyOf({ step, ok, text }: EarlierCall): string {
  const { server = "", name = "", arguments: args = {} } = step ?? {};
  return `${server} ${name} ${JSON.stringify(args)}\n${ok ? "Result" : "The call failed"}: ${text}`;
}
