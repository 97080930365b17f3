import { isIP } from "node:net";
import { Command, Option } from "commander";
import { findKeyHome } from "../resources/domains/key-home.ts";
import {
  type CheckedOperatorRecord,
  checkedRecords,
  type OperatorRecord,
  wantedRecords,
} from "../resources/domains/operator-view.ts";
import { mtaStsHost, mtaStsPolicy } from "../resources/domains/own-mta-sts.ts";
import { zoneFile } from "../resources/domains/zone-file.ts";
import { AppError, invalid } from "../errors.ts";
import { isPublicName } from "../net/domain-owner.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print, printText } from "./options.ts";
import { shown } from "./shown.ts";
import { besideServer, withApp } from "./with-app.ts";

/** The results of record checks as shown on the command line. */
const WORDS = { verified: "ok", missing: "missing", mismatch: "wrong", pending: "unknown" } as const;

export function dnsCommand(): Command {
  return new Command("dns")
    .description("the DNS records of this server and of its custom domains")
    .addCommand(recordsCommand())
    .addCommand(checkCommand());
}

/** Behind a router or NAT no network interface has the public address. */
const NAME_ADDRESS =
  "Note: no public address was found on this machine. With --address 203.0.113.7 (yours) it is filled in.";

type RecordsOptions = CommonOptions & { zone?: boolean; address: string[] };

function recordsCommand(): Command {
  return new Command("records")
    .description("print what to publish in the DNS")
    .argument("[domain]", "a custom domain (default: the domain of this server)")
    .option("--zone", "print a zone file")
    .addOption(
      new Option("--address <ip>", "public address of this machine; may be given several times")
        .default([])
        .argParser((ip: string, before: string[]) => [...before, readAddress(ip)]),
    )
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((domain: string | undefined, options: RecordsOptions) =>
      withApp({ ...options, create: "where_configured" }, async (app) => {
        const home = await findKeyHome(app, domain);
        const records = await wantedRecords(
          app,
          home,
          options.address.length > 0 ? options.address : undefined,
        );
        const zone = zoneFile(home.domain, records);
        const policy = home.row === null ? mtaStsPolicy(app.config, app.config.smtp.mta_sts) : null;
        const host = mtaStsHost(app.config);
        if (options.zone && !options.json) return printText(zone);
        const is_unknown = records.some(({ purpose, value }) => purpose === "address" && value === null);
        print(options, { domain: home.domain, records, mta_sts_policy: policy, zone }, [
          ...cautions(app.config.smtp),
          ...records.flatMap(recordLines),
          ...(is_unknown ? [NAME_ADDRESS] : []),
          ...(policy === null
            ? []
            : ["", `This server answers https://${host}/.well-known/mta-sts.txt with:`, policy]),
        ]);
      }),
    );
}

function checkCommand(): Command {
  return new Command("check")
    .description("look whether the DNS has what it should (exit code 1 if something required is not there)")
    .argument("[domain]", "a custom domain (default: the domain of this server)")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((domain: string | undefined, options: CommonOptions) =>
      besideServer(options, async (app) => {
        const home = await findKeyHome(app, domain);
        const records = await checkedRecords(app, home);
        const wrong = records.filter(({ required, status }) => required && status !== "verified");
        const faults = wrong.length;
        const unknown = wrong.filter(({ status }) => status === "pending").length;
        const shownRecords = records.map((record) => ({ ...record, status: WORDS[record.status] }));
        print(options, { domain: home.domain, ok: faults === 0, records: shownRecords }, [
          ...cautions(app.config.smtp),
          ...records.flatMap(checkLines),
        ]);
        if (unknown > 0 && unknown === faults)
          throw new AppError(
            "unavailable",
            `Of ${unknown} required ${unknown === 1 ? "record" : "records"} the DNS did not say anything, so they may be right.`,
            { fix: "See what answers the questions of this machine: mailwright doctor" },
          );
        if (faults > 0)
          throw new AppError(
            "unavailable",
            `${faults} required ${faults === 1 ? "record is" : "records are"} not right yet.`,
          );
      }),
    );
}

function readAddress(ip: string): string {
  if (isIP(ip) !== 0) return ip;
  throw invalid("--address", "invalid", `"${ip}" is not an IP address such as 203.0.113.7.`);
}

function cautions({ hostname, domain }: { hostname: string; domain: string }): string[] {
  return [
    ...(isPublicName(hostname)
      ? []
      : [
          `smtp.hostname is "${hostname}", which nobody outside can look up: set it to the public name of this machine.`,
        ]),
    ...(isPublicName(domain)
      ? []
      : [
          `smtp.domain is "${domain}", to which nobody outside can write: set it to the domain of the addresses.`,
        ]),
  ].map((line) => `Note: ${line}\n`);
}

function recordLines({ type, name, value, priority, required, note }: OperatorRecord): string[] {
  const data = value === null ? [] : [priority, value].filter((part) => part !== null);
  return [
    `${type.padEnd(5)} ${name}`,
    ...(data.length === 0 ? [] : [`      ${data.join(" ")}`]),
    `      ${required ? "required" : "optional"}: ${note}`,
    "",
  ];
}

function checkLines(record: CheckedOperatorRecord): string[] {
  const { type, name, status, found, reason, value, priority, required, note } = record;
  const right = status === "verified";
  const data = [priority, value].filter((part) => part !== null).join(" ");
  return [
    `${WORDS[status].padEnd(8)} ${type.padEnd(5)} ${name}${required || right ? "" : " (optional)"}`,
    `         ${shown(reason)}`,
    ...found.map((text) => `         found:   ${shown(text)}`),
    ...(right || status === "pending"
      ? []
      : [`         publish: ${value === null ? `(${note})` : shown(data)}`]),
  ];
}
