import type { App } from "../../src/app.ts";
import { ALONE, APART, listed } from "./kill-points.ts";
import { linesOf, placesInSource } from "./places.ts";

/** The commits made between `begin` and `end`: those listed as `ALONE`, and all others. */
export interface CommitWatch {
  begin(): void;
  end(): { alone: string[]; beside: string[] };
}

/** Watches the app's commits from now on, each under the name of the place in `src` that asked for it first. */
export async function watchCommits(app: App): Promise<CommitWatch> {
  names ??= await namesByLine();
  const known = names;
  let seen: string[] = [];
  const watched =
    (real: App["insist"]): App["insist"] =>
    (operation, about) => {
      const lines = linesOf(new Error().stack ?? "");
      const places = lines.flatMap((line) => known.get(line) ?? []);
      seen.push(places.at(-1) ?? lines.join(" "));
      return real(operation, about);
    };
  const { write } = app;
  const watchedWrite = watched(async (operation) => ({ value: await write(operation) }));
  app.write = async (operation) => (await watchedWrite(operation, {}))?.value as never;
  app.insist = watched(app.insist);
  return {
    begin: () => void (seen = []),
    end() {
      const counted = seen.filter((name) => !apart.has(name));
      return {
        alone: counted.filter((name) => alone.has(name)),
        beside: counted.filter((name) => !alone.has(name)),
      };
    },
  };
}

const alone = new Set(listed("commit", ALONE));
const apart = new Set(listed("commit", APART));
let names: Map<string, string> | undefined;

async function namesByLine(): Promise<Map<string, string>> {
  const commits = (await placesInSource()).filter(({ kind }) => kind === "commit");
  return new Map(commits.map(({ line, name }) => [line, name]));
}
