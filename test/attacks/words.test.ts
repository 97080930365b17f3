import { PLAIN_WORD } from "./plain-word.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks([...PLAIN_WORD]);
