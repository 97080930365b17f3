import { describe, expect, test } from "bun:test";
import { ConfigError, type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { AcmeError, reasonOf } from "../../src/tls/acme-error.ts";
import { certificateNames } from "../../src/tls/names.ts";

describe("what server.tls = acme needs", () => {
  const faults: [string, ConfigOverrides, string][] = [
    [
      "a public name",
      { server: { tls: "acme" } },
      'server.tls is "acme", so server.base_url (such as "https://mail.example.org"), smtp.hostname or acme.names must say the public name of this server',
    ],
    [
      "a name that is public, where there are only others",
      { server: { tls: "acme", base_url: "https://192.0.2.1" }, smtp: { hostname: "localhost" } },
      "must say the public name of this server",
    ],
    [
      "https in base_url",
      { server: { tls: "acme", base_url: "http://mail.example.org" } },
      'server.tls is "acme", so server.base_url must begin with https://',
    ],
    [
      "no files beside it",
      { server: { tls: "acme", base_url: "https://mail.example.org", cert: "a.pem", key: "b.pem" } },
      'server.cert and server.key are for server.tls = "files"; with "acme" the certificate is got by the server itself',
    ],
    [
      "names that are public",
      { acme: { names: ["*.example.org"] } },
      'acme.names entry 1 must be a public host name, such as "mail.example.org"',
    ],
    ["names with a dot", { acme: { names: ["mail"] } }, "acme.names entry 1 must be a public host name"],
    [
      "an authority that is asked over https",
      { acme: { directory: "http://ca.example.org/dir" } },
      "acme.directory must be an https:// URL",
    ],
  ];
  test.each(faults)("%s", (_name, overrides, problem) => {
    const problems = problemsOf(overrides);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });
});

describe("the names of the certificate", () => {
  const names = (overrides: ConfigOverrides) => certificateNames(defaultConfig(overrides));
  const server = { tls: "acme", base_url: "https://Mail.Example.org:8443" } as const;

  test("are those of base_url and smtp.hostname, each once", () => {
    expect(names({ server, smtp: { hostname: "mx.example.org" } })).toEqual([
      "mail.example.org",
      "mx.example.org",
    ]);
    expect(names({ server, smtp: { hostname: "mail.example.org" } })).toEqual(["mail.example.org"]);
  });

  test("hold the one of the MTA-STS policy, where there is one", () => {
    const smtp = { hostname: "mx.example.org", domain: "example.org", mta_sts: "testing" } as const;
    expect(names({ server, smtp })).toEqual(["mail.example.org", "mx.example.org", "mta-sts.example.org"]);
  });

  test("leave out what no certificate is for, and are those of acme.names if it has any", () => {
    expect(names({ server: { base_url: "https://192.0.2.1" }, smtp: { hostname: "vm1" } })).toEqual([]);
    expect(names({ server, acme: { names: ["A.example.org", "a.example.org"] } })).toEqual(["a.example.org"]);
  });
});

test.each([
  ["dns", "Publish an A or AAAA record that points it to this machine."],
  ["connection", "Let port 80 through the firewall and the router to acme.listen (0.0.0.0:80)."],
  ["unauthorized", "Point its A and AAAA records here"],
  ["caa", "A CAA record of mx.example.org forbids this authority."],
  ["rateLimited", "Nothing is to be done but to wait."],
  ["rejectedIdentifier", "Set acme.names to public names of this machine."],
  ["invalidContact", "The authority does not take the address in acme.email."],
  ["externalAccountRequired", "Name another in acme.directory."],
  ["somethingNew", "The authority refused."],
])("a refusal of kind %s is told with its mend", (kind, words) => {
  const problem = { type: `urn:ietf:params:acme:error:${kind}`, detail: "why", name: "mx.example.org" };
  const reason = reasonOf(new AcmeError([problem]), defaultConfig());
  expect(reason).toContain(words);
  expect(reason).toContain("(It says: why)");
});

function problemsOf(overrides: ConfigOverrides): string[] {
  try {
    defaultConfig(overrides);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}
