/** The instruction of a message as it was understood: what it is aimed at, what is asked, with which options. */
export interface Command {
  target: string | null;
  command: string;
  options: Record<string, string | boolean>;
  contexts: string[];
  tags: string[];
  macro: string | null;
  raw: string;
}

/** Plain text for now: the whole instruction is the command. */
export function parseCommand(instruction: string): Command {
  return {
    target: null,
    command: instruction.trim(),
    options: {},
    contexts: [],
    tags: [],
    macro: null,
    raw: instruction,
  };
}
