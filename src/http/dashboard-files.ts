import { existsSync } from "node:fs";
import { join } from "node:path";

const BUILT = join(import.meta.dir, "../../dist/dashboard");

/**
 * The files of the dashboard by their path below /app. The build replaces this module by one that lists the files
 * inside the binary.
 */
export const DASHBOARD_FILES: Record<string, string> = existsSync(BUILT) ? filesIn(BUILT) : {};

function filesIn(folder: string): Record<string, string> {
  const names = new Bun.Glob("**/*").scanSync({ cwd: folder, onlyFiles: true });
  return Object.fromEntries([...names].map((name) => [name, join(folder, name)]));
}
