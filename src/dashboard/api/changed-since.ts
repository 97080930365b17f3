import { ApiError } from "./client.ts";

/**
 * Throws where one of the members no longer says what a change of ours has made it say: to take our change back would
 * also take back what somebody, or another tab, has changed since.
 */
export function refuseChanged<T extends object>(now: T, made: T, members: Iterable<keyof T>): void {
  for (const name of members)
    if (JSON.stringify(now[name]) !== JSON.stringify(made[name]))
      throw new ApiError({ status: 409, code: "conflict", detail: "It has been changed again since then." });
}
