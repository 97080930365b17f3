import { readFile } from "node:fs/promises";
import type { Config } from "../config/config.ts";
import { AppError, messageOf } from "../errors.ts";

/** Returns the operator's own certificate authority (PEM) from `acme.ca_file`; undefined where none is set. */
export async function readCaFile({ acme }: Config): Promise<string | undefined> {
  if (acme.ca_file === "") return undefined;
  return readFile(acme.ca_file, "utf8").catch((error: unknown) => {
    throw new AppError("unavailable", `acme.ca_file cannot be read: ${messageOf(error)}.`, {
      fix: "Set it to a file in PEM form that this user may read.",
    });
  });
}
