import { OWN_THINGS } from "./own-things.ts";
import { RETURNED } from "./returned.ts";
import { TOLD_BESIDE } from "./told-beside.ts";
import { tryAttacks } from "./try-attacks.ts";
import { WRITTEN_PICTURES } from "./written-pictures.ts";

tryAttacks([...TOLD_BESIDE, ...RETURNED, ...WRITTEN_PICTURES, ...OWN_THINGS]);
