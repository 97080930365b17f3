import { CONTENT } from "./content.ts";
import { PEOPLE } from "./people.ts";
import { REPLAYS } from "./replays.ts";
import { ALTERED } from "./altered.ts";
import { DOUBTFUL } from "./doubtful.ts";
import { FILE_TURNS } from "./file-turns.ts";
import { FORMS } from "./forms.ts";
import { NAMED_FILES } from "./named-files.ts";
import { REFLECTED } from "./reflected.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks([
  ...CONTENT,
  ...PEOPLE,
  ...REPLAYS,
  ...ALTERED,
  ...DOUBTFUL,
  ...FILE_TURNS,
  ...REFLECTED,
  ...FORMS,
  ...NAMED_FILES,
]);
