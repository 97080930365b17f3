import { SHARED_POSTS } from "./shared-posts.ts";
import { tryAttacks } from "./try-attacks.ts";

tryAttacks([...SHARED_POSTS]);
