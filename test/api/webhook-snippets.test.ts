import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintSecret } from "../../src/resources/webhooks/secrets.ts";
import { sign } from "../../src/resources/webhooks/signature.ts";
import { testApp } from "../support/app.ts";

const SECRET = mintSecret();
const OLD_SECRET = mintSecret();
/** Bytes that a program that reads and writes it again would not give back. */
const BODY = '{"id":"evt_1", "text":"Grüße, 世界 \\u00e9\\/ 🌍",\r\n"n":1.0}\n';

/** Go builds its own library when it runs for the first time. */
const COMPILE_MS = 120_000;

interface Case {
  claim: string;
  genuine: boolean;
  body: string;
  /** Null where a visitor sends no such header. */
  signature: string | null;
  secret: string;
}

/** Reads cases as JSON and writes down which of them it takes for genuine. */
interface Language {
  /** The id of the section on the page. */
  id: string;
  tool: string;
  file: string;
  /** What goes around the program of the page. */
  harness: (snippet: string) => string;
  command: (file: string) => string[];
}

const JS = (snippet: string): string => `${snippet}
const cases = JSON.parse(await (await import("node:fs/promises")).readFile("cases.json", "utf8"));
console.log(JSON.stringify(cases.map(({ body, signature, secret }) => isGenuine(body, signature, secret))));
`;

const LANGUAGES: Language[] = [
  { id: "node", tool: "node", file: "hook.mjs", harness: JS, command: (file) => ["node", file] },
  { id: "node", tool: "bun", file: "hook.bun.mjs", harness: JS, command: (file) => ["bun", file] },
  {
    id: "python",
    tool: "python3",
    file: "hook.py",
    harness: (snippet) => `${snippet}

import json

cases = json.load(open("cases.json", encoding="utf-8"))
print(json.dumps([is_genuine(c["body"].encode(), c["signature"], c["secret"]) for c in cases]))
`,
    command: (file) => ["python3", file],
  },
  {
    id: "go",
    tool: "go",
    file: "main.go",
    harness: (snippet) => `${snippet
      .replace("package webhook", "package main")
      .replace("import (", 'import (\n\t"encoding/json"\n\t"fmt"\n\t"os"')}
func main() {
	text, _ := os.ReadFile("cases.json")
	cases := []struct{ Body, Signature, Secret string }{}
	json.Unmarshal(text, &cases)
	found := []bool{}
	for _, c := range cases {
		found = append(found, IsGenuine([]byte(c.Body), c.Signature, c.Secret))
	}
	out, _ := json.Marshal(found)
	fmt.Println(string(out))
}
`,
    command: (file) => ["go", "run", file],
  },
  {
    id: "php",
    tool: "php",
    file: "hook.php",
    harness: (snippet) => `${snippet}
$found = [];
foreach (json_decode(file_get_contents('cases.json'), true) as $case) {
    $found[] = is_genuine($case['body'], $case['signature'], $case['secret']);
}
echo json_encode($found);
`,
    command: (file) => ["php", file],
  },
];

let folder: string;
let page: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mailwright-snippets-"));
  await using t = await testApp();
  page = String((await t.request("/docs/webhooks")).body);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("what the page on webhooks shows for", () => {
  for (const { id, tool, file, harness, command } of LANGUAGES) {
    const there = Bun.which(tool) !== null;
    if (!there)
      console.log(`the program for ${tool} on /docs/webhooks is not tried: ${tool} is not installed`);
    test.skipIf(!there)(
      `${tool} tells what is genuine from what is not`,
      async () => {
        const cases = signedCases();
        await Bun.write(join(folder, "cases.json"), JSON.stringify(cases));
        await Bun.write(join(folder, file), harness(snippetOf(id)));
        const { code, out, err } = await run(command(file));
        expect([code, err]).toEqual([0, ""]);
        const found = JSON.parse(out) as boolean[];
        expect(cases.map(({ claim }, index) => [claim, found[index]])).toEqual(
          cases.map(({ claim, genuine }) => [claim, genuine]),
        );
      },
      COMPILE_MS,
    );
  }

  const OPENSSL = Bun.which("openssl") !== null;
  if (!OPENSSL) console.log("the program for a shell on /docs/webhooks is not tried: no openssl");
  test.skipIf(!OPENSSL)("a shell with openssl tells what is genuine from what is not", async () => {
    await Bun.write(join(folder, "hook.sh"), snippetOf("openssl"));
    const cases = signedCases();
    const found = await Promise.all(
      cases.map(async ({ claim, body, signature, secret }) => {
        const { code, out } = await run(["sh", "hook.sh", secret, signature ?? ""], body);
        return [claim, code === 0 && out === "genuine\n"] as const;
      }),
    );
    expect(found).toEqual(cases.map(({ claim, genuine }) => [claim, genuine] as const));
  });

  test("the test vector is the one that deliveries are signed by", () => {
    const vector = { id: "evt_1", type: "message.completed", timestamp: 1_700_000_000, attempt: 1 } as const;
    const { "service-signature": signature = "" } = sign(["whsec_test"], {
      ...vector,
      body: '{"id":"evt_1"}',
    });
    expect(page).toContain(signature.split("v1=")[1]!);
  });
});

function signedCases(): Case[] {
  const now = Math.floor(Date.now() / 1_000);
  const signed = (timestamp: number, secrets: string[]): string => {
    const event = { id: "evt_1", type: "message.completed", body: BODY } as const;
    return sign(secrets, { ...event, timestamp, attempt: 1 })["service-signature"] ?? "";
  };
  const good = signed(now, [SECRET]);
  const v1 = good.split(",")[1] ?? "";
  const given = { genuine: false, body: BODY, signature: good, secret: SECRET };
  return [
    { ...given, claim: "what was signed", genuine: true },
    {
      ...given,
      claim: "signed by two, the first fits",
      genuine: true,
      signature: signed(now, [SECRET, OLD_SECRET]),
    },
    {
      ...given,
      claim: "signed by two, the second fits",
      genuine: true,
      signature: signed(now, [OLD_SECRET, SECRET]),
    },
    { ...given, claim: "almost too old", genuine: true, signature: signed(now - 270, [SECRET]) },
    { ...given, claim: "too old", signature: signed(now - 302, [SECRET]) },
    { ...given, claim: "of the future", signature: signed(now + 330, [SECRET]) },
    { ...given, claim: "one letter of the body is another", body: BODY.replace("Gr", "gr") },
    { ...given, claim: "the body without its last line end", body: BODY.trimEnd() },
    { ...given, claim: "the body parsed and written again", body: JSON.stringify(JSON.parse(BODY)) },
    { ...given, claim: "no body", body: "" },
    { ...given, claim: "another secret", secret: OLD_SECRET },
    { ...given, claim: "the secret without its prefix", secret: SECRET.slice(6) },
    { ...given, claim: "another time", signature: `t=${now - 1},${v1}` },
    {
      ...given,
      claim: "one digit is another",
      signature: good.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    },
    { ...given, claim: "half of a signature", signature: good.slice(0, -32) },
    { ...given, claim: "an empty signature", signature: `t=${now},v1=` },
    { ...given, claim: "no v1", signature: `t=${now}` },
    { ...given, claim: "no time", signature: v1 },
    { ...given, claim: "a time that is none", signature: `t=soon,${v1}` },
    { ...given, claim: "a time without end", signature: `t=${"9".repeat(5_000)},${v1}` },
    { ...given, claim: "another scheme", signature: good.replace("v1=", "v0=") },
    { ...given, claim: "letters that are not hexadecimal", signature: `t=${now},v1=${"zé".repeat(32)}` },
    { ...given, claim: "an empty header", signature: "" },
    { ...given, claim: "no header", signature: null },
  ];
}

function snippetOf(id: string): string {
  const section = new RegExp(`<section id="${id}">(.*?)</section>`, "s").exec(page)?.[1] ?? "";
  const html = /<pre>(.*?)<\/pre>/s.exec(section)?.[1] ?? "";
  const text = html.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"');
  return text.replaceAll("&#x27;", "'").replaceAll("&amp;", "&");
}

async function run(command: string[], input = ""): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn(command, {
    cwd: folder,
    stdin: Buffer.from(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, out, err };
}
