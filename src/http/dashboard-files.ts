import { join } from "node:path";

const BUILT = join(import.meta.dir, "../../dist/dashboard");

/** The files of the dashboard, by their path below /app. The built binary has another version of this list, of what is inside of it. */
export const DASHBOARD_FILES: Record<string, string> = Object.fromEntries(
  [...new Bun.Glob("**/*").scanSync({ cwd: BUILT, onlyFiles: true })].map((name) => [
    name,
    join(BUILT, name),
  ]),
);
