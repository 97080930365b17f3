import { beforeAll, describe, expect, test } from "bun:test";
import { fromMailbox, readHeaders } from "../../src/mail/reading/headers.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { type Case, CASES, CLIENT, identify, writeMail } from "../support/identity-cases.ts";
import { hasSecondOpinion, type Opinion, type Question, secondOpinions } from "../support/second-opinion.ts";

if (!hasSecondOpinion)
  console.log(
    "other people's verdicts are not tried: apt-get install opendmarc publicsuffix python3-authres python3-dkim python3-nacl python3-spf",
  );

async function questionOf(row: Case, raw: Buffer): Promise<Question> {
  const silent: string[] = [];
  row.during?.({ fault: (name: string) => silent.push(name) } as unknown as TestDnsServer);
  return {
    raw: raw.toString("base64"),
    ip: row.remote_address ?? CLIENT,
    helo: row.helo ?? "client.test",
    mail_from: row.mail_from ?? "bounces@elsewhere.test",
    zone: row.zone,
    silent,
    sealers: row.sealers ?? [],
  };
}

describe.skipIf(!hasSecondOpinion)("dkimpy, pyspf and OpenDMARC", () => {
  const mails: Buffer[] = [];
  let opinions: Opinion[] = [];

  beforeAll(async () => {
    const questions: Question[] = [];
    for (const row of CASES) {
      const raw = await writeMail(row);
      mails.push(raw);
      questions.push(await questionOf(row, raw));
    }
    opinions = secondOpinions(questions);
  });

  test("are asked about sixty cases and more, and some of them pass", () => {
    expect(opinions.length).toBe(CASES.length);
    expect(CASES.length).toBeGreaterThanOrEqual(60);
    expect(opinions.filter(({ authenticated }) => authenticated).length).toBeGreaterThan(20);
  });

  for (const [index, row] of CASES.entries()) {
    const claim = row.stricter === undefined ? "agree" : `believe more, because ${row.stricter},`;
    test(`${claim} where our own check ${row.claim}`, async () => {
      await using dns = await startDnsServer(row.zone);
      row.during?.(dns);
      const raw = mails[index] ?? Buffer.alloc(0);
      expect(fromMailbox(readHeaders(raw)).ok).toBe(true);
      const ours = await identify(raw, row, dns);
      const theirs = opinions[index];
      const both = { ours: ours.authenticated, theirs: theirs?.authenticated, because: theirs };
      const theirsToo = row.stricter === undefined ? ours.authenticated : true;
      expect(both).toEqual({ ours: ours.authenticated, theirs: theirsToo, because: theirs });
      if (row.stricter !== undefined) expect(ours.authenticated).toBe(false);
      expect(ours.auth.spf).toBe(theirs?.spf ?? "");
    });
  }
});
