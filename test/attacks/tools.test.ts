import { ACTING } from "./acting.ts";
import { BOTS } from "./bots.ts";
import { SERVERS } from "./servers.ts";
import { GRANTS } from "./grants.ts";
import { CALLS } from "./calls.ts";
import { PACKED } from "./packed.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks([...SERVERS, ...GRANTS, ...CALLS, ...PACKED, ...ACTING, ...BOTS]);
