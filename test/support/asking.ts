/** The paragraph by which an answer says that a call waits for the owner's yes. */
const ASKING = /Not done yet, as it waits for [^\n]*(?:\n\n|$)/;

/** An answer, or the words of a step, without the sentence that a call waits for a yes. */
export function withoutAsking(text: string): string {
  return text.replace(ASKING, "");
}
