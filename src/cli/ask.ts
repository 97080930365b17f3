import { createInterface } from "node:readline/promises";
import { AppError } from "../errors.ts";

/** Asks at the terminal whether to go on. Where there is none, the command has to say so itself. */
export async function mayGoOn(question: string, more = ""): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new AppError("unavailable", question, { fix: "Say --yes if that is what you want." });
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question}\n${more}Go on? [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}
