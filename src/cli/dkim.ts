import { Command } from "commander";
import type { App } from "../app.ts";
import type { DkimKeyRow } from "../db/schema.ts";
import { findKeyHome, rotateKeys, type RotationStep } from "../resources/domains/key-home.ts";
import { keyAdvice } from "../resources/domains/records.ts";
import { dkimRecord } from "../mail/writing/dkim.ts";
import { chosenKeys, damagedOf, keyRows } from "../mail/writing/dkim-keys.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { withApp } from "./with-app.ts";

const STEPS: Record<RotationStep, string> = {
  made: "New keys are made. Publish the records of those that wait; once the DNS shows them, mail is signed with them by itself. Leave the old records where they are for now.",
  waiting: "The records of the new keys are not all to be seen yet, so the old keys go on signing.",
  switched:
    "The records of the new keys are there: they sign from now on. `dkim show` says how long to keep the old records.",
};

export function dkimCommand(): Command {
  return new Command("dkim")
    .description("the keys that mail is signed with")
    .addCommand(
      command("show", "print the keys of a domain: selectors, states and records", (options, domain) =>
        withApp(options, async (app) => {
          const home = await findKeyHome(app, domain);
          const keys = await keyRows(app.db, home.row?.id ?? null);
          print(
            options,
            { domain: home.domain, keys: viewsOf(app, keys, home.domain) },
            linesOf(app, keys, home.domain),
          );
        }),
      ),
    )
    .addCommand(
      command("rotate", "make new keys for a domain, or go on with a change of keys", (options, domain) =>
        withApp(options, async (app) => {
          const home = await findKeyHome(app, domain);
          const { step, keys } = await rotateKeys(app, home);
          print(options, { domain: home.domain, step, keys: viewsOf(app, keys, home.domain) }, [
            STEPS[step],
            "",
            ...linesOf(app, keys, home.domain),
          ]);
        }),
      ),
    );
}

function command(
  name: string,
  description: string,
  run: (options: CommonOptions, domain: string | undefined) => Promise<void>,
): Command {
  return new Command(name)
    .description(description)
    .argument("[domain]", "a custom domain (default: the domain of this server)")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((domain: string | undefined, options: CommonOptions) => run(options, domain));
}

/** Returns the keys without their private halves. */
function viewsOf(app: App, keys: DkimKeyRow[], domain: string) {
  const { damaged, signing } = usesOf(app, keys);
  return keys.map((key) => {
    const { selector, algorithm, state, record, seen_at, created, retired_at } = key;
    const { name, value } = dkimRecord(key, domain);
    const uses = { signs: signing.includes(key), damaged: damaged.includes(key) };
    return {
      selector,
      algorithm,
      state,
      ...uses,
      record,
      seen_at,
      created,
      retired_at,
      dns: { name, value },
    };
  });
}

function linesOf(app: App, keys: DkimKeyRow[], domain: string): string[] {
  const { damaged, signing } = usesOf(app, keys);
  /** Told where the state does not say it. */
  const useOf = (key: DkimKeyRow): string => {
    if (damaged.includes(key)) return ", damaged";
    const is_expected = key.state === "signing";
    if (signing.includes(key) === is_expected) return "";
    return is_expected ? ", not used" : ", signs";
  };
  return keys.flatMap((key) => {
    const { name, value } = dkimRecord(key, domain);
    const head = `${key.selector}  ${key.algorithm}  ${key.state}${useOf(key)}  (record: ${key.record})`;
    const advice = keyAdvice(key);
    return [head, ...indented(advice === undefined ? [] : [advice]), ...indented([`${name} TXT`, value])];
  });
}

function usesOf(app: App, keys: DkimKeyRow[]): { damaged: DkimKeyRow[]; signing: DkimKeyRow[] } {
  const damaged = damagedOf(app, keys);
  return { damaged, signing: chosenKeys(keys.filter((key) => !damaged.includes(key))) };
}

function indented(lines: string[]): string[] {
  return lines.map((line) => `    ${line}`);
}
