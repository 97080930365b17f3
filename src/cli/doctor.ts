import { Command, Option } from "commander";
import type { Finding } from "../operation/doctor/check.ts";
import { AppError } from "../errors.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { shown } from "./shown.ts";
import { besideServer } from "./with-app.ts";

type DoctorOptions = CommonOptions & { mailDomain?: string; web?: string };

export function doctorCommand(): Command {
  return new Command("doctor")
    .description(
      "look at everything that a server needs, and say how to mend what is wrong (changes nothing)",
    )
    .addOption(new Option("--mail-domain <domain>", "whose mail servers to knock at (default: gmail.com)"))
    .addOption(new Option("--web <url>", "a web page to try to reach (default: https://example.com/)"))
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((options: DoctorOptions) =>
      besideServer(options, async (app, running) => {
        // Loaded here, because no other command needs it.
        const { examine, TARGETS } = await import("../operation/doctor/doctor.ts");
        const targets = {
          ...TARGETS,
          ...(options.mailDomain === undefined ? {} : { mail_domain: options.mailDomain }),
          ...(options.web === undefined ? {} : { web_url: options.web }),
        };
        const findings = await examine(app, { running, targets });
        const failed = findings.filter(({ verdict }) => verdict === "fail").length;
        const checks = findings.map((finding) => ({ ...finding, mend: finding.mend ?? null }));
        print(options, { ok: failed === 0, checks }, [
          ...(app.config.outbound.mode === "capture" ? [TRYING, ""] : []),
          ...findings.flatMap(linesOf),
          "",
          summaryOf(findings),
        ]);
        if (failed > 0)
          throw new AppError("unavailable", failed === 1 ? "1 check failed." : `${failed} checks failed.`);
      }),
    );
}

const TRYING =
  'This server mails nothing to anybody (outbound.mode = "capture"), as for trying it out: what is said of DNS, ports and certificates counts once it is to go live.';

function linesOf({ name, verdict, found, mend }: Finding): string[] {
  return [
    `${verdict.padEnd(5)} ${name}: ${shown(found)}`,
    ...(mend === undefined ? [] : [`      Mend: ${shown(mend)}`]),
  ];
}

function summaryOf(findings: Finding[]): string {
  const count = (verdict: Finding["verdict"]): number =>
    findings.filter((finding) => finding.verdict === verdict).length;
  return `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed, ${count("skip")} not looked at.`;
}
