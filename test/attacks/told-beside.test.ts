import { RETURNED } from "./returned.ts";
import { TOLD_BESIDE } from "./told-beside.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks([...TOLD_BESIDE, ...RETURNED]);
