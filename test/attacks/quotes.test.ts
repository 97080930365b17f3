import { QUOTES_THAT_END } from "./quotes.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks(QUOTES_THAT_END);
