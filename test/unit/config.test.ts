import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "smol-toml";
import example from "../../config.example.toml" with { type: "text" };
import { splitListen } from "../../src/config/forms.ts";
import { KEYS } from "../../src/config/load.ts";
import {
  ConfigError,
  defaultConfig,
  findConfigFile,
  loadConfig,
  maskedConfig,
} from "../../src/config/config.ts";
import type { ConfigOverrides, ConfigSources } from "../../src/config/config.ts";
import { closestName } from "../../src/lib/closest-name.ts";
import { spansInWords } from "../../src/lib/durations.ts";
import { createAuthority } from "../support/authority.ts";

const CLI = join(import.meta.dir, "../../src/cli/config.ts");
const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");

describe("order", () => {
  test("nothing given means the defaults", () => {
    using folder = emptyFolder();
    const config = loadConfig({ env: {}, cwd: folder.path });
    expect(config).toEqual(defaultConfig());
    expect(config.server.listen).toBe("0.0.0.0:8080");
    expect(config.smtp.max_message_bytes).toBe(31_457_280);
    expect(config.plans.team.credits).toBe("unlimited");
  });

  test("a flag wins over the environment, the environment over the file, the file over the default", () => {
    const file = '[server]\nlisten = "127.0.0.1:1"\n[smtp]\nlisten = "127.0.0.1:1"\n[log]\nlevel = "warn"\n';
    const env = { MAILWRIGHT_SERVER__LISTEN: "127.0.0.1:2", MAILWRIGHT_SMTP__LISTEN: "127.0.0.1:2" };
    const overrides = { server: { listen: "127.0.0.1:3", base_url: undefined } };
    const config = load(file, { env, overrides });
    expect(config.server.listen).toBe("127.0.0.1:3");
    expect(config.smtp.listen).toBe("127.0.0.1:2");
    expect(config.log.level).toBe("warn");
    expect(config.log.format).toBe("text");
  });

  test("takes the file named by --config, then by MAILWRIGHT_CONFIG, then config.toml", () => {
    using folder = emptyFolder();
    expect(findConfigFile({ cwd: folder.path, env: {} })).toBeUndefined();
    for (const [name, credits] of Object.entries({ "config.toml": 1, "env.toml": 2, "flag.toml": 3 })) {
      folder.write(name, `[plans.free]\ncredits = ${credits}\n`);
    }
    const credits = (sources: ConfigSources) =>
      loadConfig({ cwd: folder.path, ...sources }).plans.free.credits;
    const env = { MAILWRIGHT_CONFIG: "env.toml" };
    expect(credits({ env: {} })).toBe(1);
    expect(credits({ env })).toBe(2);
    expect(credits({ env, file: join(folder.path, "flag.toml") })).toBe(3);
  });

  test("a named file that is not there is a problem, never a silent default", () => {
    using folder = emptyFolder();
    const problems = problemsOf(() => loadConfig({ cwd: folder.path, env: {}, file: "gone.toml" }));
    expect(problems).toEqual([
      "There is no file gone.toml. Name the right one with --config or MAILWRIGHT_CONFIG",
    ]);
  });

  test("a folder in place of the file is a problem", () => {
    using folder = emptyFolder();
    expect(problemsOf(() => loadConfig({ cwd: folder.path, env: {}, file: "." }))).toHaveLength(1);
  });
});

describe("defaults that follow from other keys", () => {
  test("the mail domain follows the host name", () => {
    const { smtp } = defaultConfig({ smtp: { hostname: "MX.Example.org" } });
    expect(smtp.hostname).toBe("mx.example.org");
    expect(smtp.domain).toBe("mx.example.org");
  });

  test("a domain of its own is kept", () => {
    const { smtp } = defaultConfig({
      smtp: { hostname: "mx.example.org", domain: "in.example.org" },
    });
    expect(smtp.domain).toBe("in.example.org");
  });

  test("the machine's name is used when there is none, and it can stand in an address", () => {
    expect(defaultConfig().smtp.hostname).toMatch(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/);
  });

  test("the database lies in the data folder", () => {
    expect(defaultConfig().database.url).toBe("sqlite:data/mailwright.db");
    expect(defaultConfig({ data: { dir: "/srv/mw/" } }).database.url).toBe("sqlite:/srv/mw/mailwright.db");
    expect(defaultConfig({ database: { url: "sqlite::memory:" } }).database.url).toBe("sqlite::memory:");
  });

  test("the slash at the end of base_url is dropped", () => {
    const at = (base_url: string) => defaultConfig({ server: { base_url } }).server.base_url;
    expect(at("https://mail.example.org/")).toBe("https://mail.example.org");
    expect(at("")).toBe("");
  });

  test("two configurations never share a list", () => {
    defaultConfig().outbound.retry.push(1);
    expect(defaultConfig().outbound.retry).not.toContain(1);
  });
});

describe("environment", () => {
  test("every key can be set by its variable and by a file", () => {
    using folder = emptyFolder();
    for (const [path, key] of KEYS) {
      const name = `MAILWRIGHT_${path.toUpperCase().replaceAll(".", "__")}`;
      const value = Array.isArray(key.default) ? key.default.join(",") : String(key.default);
      folder.write("value", `${value}\n`);
      const plain = loadConfig({ cwd: folder.path, env: { [name]: value } });
      const fromFile = loadConfig({ cwd: folder.path, env: { [`${name}__FILE`]: "value" } });
      expect([path, plain]).toEqual([path, defaultConfig()]);
      expect([path, fromFile]).toEqual([path, defaultConfig()]);
    }
  });

  test("reads numbers, lists and plans", () => {
    const config = load("", {
      env: {
        MAILWRIGHT_PLANS__FREE__CREDITS: "7",
        MAILWRIGHT_ROUTING__SYNC_BUDGET_SECONDS: "0.5",
        MAILWRIGHT_SMTP__TRUSTED_NETWORKS: "127.0.0.1/32, ::1,",
        MAILWRIGHT_OUTBOUND__RETRY: "1,2",
        MAILWRIGHT_SMTP__LISTEN: "",
        MAILWRIGHT_DNS__SERVERS: "",
      },
    });
    expect(config.plans.free.credits).toBe(7);
    expect(config.routing.sync_budget_seconds).toBe(0.5);
    expect(config.smtp.trusted_networks).toEqual(["127.0.0.1/32", "::1"]);
    expect(config.outbound.retry).toEqual([1, 2]);
    expect(config.smtp.listen).toBe("");
    expect(config.dns.servers).toEqual([]);
  });

  test("takes one line break off the end of a secret's file, and only that", () => {
    using folder = emptyFolder();
    for (const ending of ["", "\n", "\r\n"]) {
      folder.write("key", ` sk-1 ${ending}`);
      const env = { MAILWRIGHT_LLM__KIND: "openai", MAILWRIGHT_LLM__API_KEY__FILE: "key" };
      expect(loadConfig({ cwd: folder.path, env }).llm.api_key).toBe(" sk-1 ");
    }
    folder.write("key", "sk-1\nInjected: yes\n");
    const env = { MAILWRIGHT_LLM__API_KEY__FILE: "key" };
    const problems = problemsOf(() => loadConfig({ cwd: folder.path, env }));
    expect(problems).toEqual([
      "MAILWRIGHT_LLM__API_KEY__FILE: llm.api_key must be one line without control characters",
    ]);
  });

  test("refuses a value and a file for the same key", () => {
    const env = { MAILWRIGHT_LLM__MODEL: "a", MAILWRIGHT_LLM__MODEL__FILE: "b" };
    expect(problemsOf(() => load("", { env }))).toContain(
      "MAILWRIGHT_LLM__MODEL__FILE: MAILWRIGHT_LLM__MODEL is set too; remove one of the two",
    );
  });

  test("refuses a value file that cannot be read, without a second problem about the missing value", () => {
    const env = { MAILWRIGHT_LLM__KIND: "openai", MAILWRIGHT_LLM__API_KEY__FILE: "/nowhere/key" };
    const problems = problemsOf(() => load("", { env }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith("MAILWRIGHT_LLM__API_KEY__FILE: the file it names cannot be read");
  });

  test.each(["", " "])("refuses the empty name %p of a value file", (name) => {
    const env = { MAILWRIGHT_LLM__KIND: "openai", MAILWRIGHT_LLM__API_KEY__FILE: name };
    expect(problemsOf(() => load("", { env }))).toEqual([
      "MAILWRIGHT_LLM__API_KEY__FILE: names no file; set it to the path of one, or remove it",
    ]);
  });

  test.each([
    ["MAILWRIGHT_SMTP__LISTN", "Did you mean MAILWRIGHT_SMTP__LISTEN?"],
    ["MAILWRIGHT_SMTP_LISTEN", "Did you mean MAILWRIGHT_SMTP__LISTEN?"],
    ["MAILWRIGHT_LLM__API_KEYS__FILE", "Did you mean MAILWRIGHT_LLM__API_KEY?"],
    ["MAILWRIGHT_SOMETHING_ELSE", "mailwright config example"],
    ["MAILWRIGHT_SERVER__PORT", ""],
  ])("refuses the unknown variable %s", (name, hint) => {
    const problems = problemsOf(() => load("", { env: { [name]: "secret-value" } }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`${name}: no key is set by this variable. `);
    expect(problems[0]).toContain(hint);
    expect(problems[0]).not.toContain("secret-value");
  });

  test("leaves alone other programs' variables and those an orchestrator adds for a service of this name", () => {
    const env = {
      PATH: "/bin",
      mailwright_smtp__listen: "x",
      MAILWRIGHT_SERVICE_HOST: "10.0.0.1",
      MAILWRIGHT_SERVICE_PORT_HTTP: "80",
      MAILWRIGHT_SMTP_SERVICE_PORT: "25",
      MAILWRIGHT_PORT: "tcp://10.0.0.1:80",
      MAILWRIGHT_PORT_80_TCP_ADDR: "10.0.0.1",
    };
    expect(load("", { env })).toEqual(defaultConfig());
    expect(problemsOf(() => load("", { env: { MAILWRIGHT_PORT: "80" } }))).toHaveLength(1);
  });
});

describe("problems", () => {
  test("are all reported at once, each with its place and the mend", () => {
    const file = [
      "[server]",
      'lisen = "127.0.0.1:80"',
      "[smpt]",
      'listen = "127.0.0.1:25"',
      "",
      "[plans.free]",
      "credits = -1",
      "[plans]",
      "pro.inboxes = 1.5",
      "[outbound]",
      'mode = "relai"',
      'retry = [60, "later"]',
      'relay = "smtp://relay.example.org"',
    ].join("\n");
    const env = { MAILWRIGHT_LOG__LEVEL: "loud" };
    const overrides = { server: { listen: "8080" } };
    expect(problemsOf(() => load(file, { env, overrides }))).toEqual([
      "config.toml line 2: server.lisen is not a known key. Did you mean server.listen?",
      "config.toml line 3: smpt is not a known section. Did you mean smtp?",
      'config.toml line 7: plans.free.credits must be a whole number from 0 to 1000000000 or "unlimited", not -1',
      "config.toml line 9: plans.pro.inboxes must be a whole number from 0 to 1000000000, not 1.5",
      'config.toml line 11: outbound.mode must be "capture", "relay" or "direct", not "relai"',
      'config.toml line 12: outbound.retry entry 2 must be a number of seconds from 0 to 2592000, not "later"',
      "config.toml line 13: outbound.relay is not a known key. Did you mean outbound.relay_url?",
      'MAILWRIGHT_LOG__LEVEL: log.level must be "trace", "debug", "info", "warn", "error", "fatal" or "silent", not "loud"',
      'command line: server.listen must be host:port, such as "0.0.0.0:8080" or "[::]:8080", not "8080"',
    ]);
  });

  test("are settings with which no webhook would ever be delivered", () => {
    expect(problemsOf(() => load("[webhooks]\nbackoff = []\ntimeout_seconds = 0\n"))).toEqual([
      "config.toml line 2: webhooks.backoff must have at least 1 entry",
      "config.toml line 3: webhooks.timeout_seconds must be a number of seconds from 1 to 600, not 0",
    ]);
  });

  test("are told in the order of the lines of the file, and those of other places behind them", () => {
    const text = '[smtp]\nnope = 1\n[plans.free]\ncredits = -1\n[foo]\nx = 1\n[outbound]\nmode = "relay"\n';
    const problems = problemsOf(() => load(text, { env: { MAILWRIGHT_LOG__LEVEL: "loud" } }));
    const lines = problems.map((problem) => Number(/line (\d+)/.exec(problem)?.[1] ?? 99));
    expect(lines).toEqual([2, 4, 5, 8, 99]);
  });

  test("name no section that is nothing like the one that is unknown", () => {
    expect(problemsOf(() => load("[foo]\nx = 1\n"))).toEqual([
      expect.stringMatching(/^config\.toml line 1: foo is not a known section\. Known there: server, /),
    ]);
    expect(problemsOf(() => load("[smpt]\nx = 1\n"))[0]).toEndWith("Did you mean smtp?");
  });

  test("the error's message lists every one of them", () => {
    const error = new ConfigError(["first", "second"]);
    expect(error.message).toBe("The configuration has 2 problems:\n  - first\n  - second");
    expect(error.problems).toEqual(["first", "second"]);
  });

  test("a file that is not TOML names line and column, without quoting the line", () => {
    const problems = problemsOf(() => load('[llm]\napi_key = "sk-secret\n'));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^config\.toml line 2, column \d+: /);
    expect(problems[0]).not.toContain("sk-secret");
  });

  test("of a number with a comma before its decimals it is said how it is written", () => {
    const [problem] = problemsOf(() => load("[costs.prices.small]\ninput = 0,75\n"));
    expect(problem).toEndWith("; a number has a point before its decimals, such as 0.75");
  });

  test.each([
    "127.0.0.1:80",
    "localhost",
    "mail.example.com # here",
    "/var/lib/x",
    "you@example.com",
    "10.0.0.1",
  ])("of %s without quotes it is said what is missing", (value) => {
    const [problem] = problemsOf(() => load(`[server]\nlisten = ${value}\n`));
    expect(problem).toStartWith("config.toml line 2, column ");
    expect(problem).toEndWith("; put the text after the = in quotes");
  });

  test.each([`"127.0.0.1:80`, `'127.0.0.1:80`, '["a", "b]', String.raw`"a \" b`])(
    "of %s it is said that its last quote is missing",
    (value) => {
      const [problem] = problemsOf(() => load(`[server]\nlisten = ${value}\nbase_url = ""\n`));
      expect(problem).toStartWith("config.toml line 2, column ");
      expect(problem).toEndWith("; a text begins with a quote there and has none at its end");
    },
  );

  test.each(["08 # it's one", "08", "True", '["a", b', "[", "", '"a" b'])(
    "quotes are not said to be missing where %s is wrong for another reason",
    (value) => {
      const [problem] = problemsOf(() => load(`[server]\nlisten = ${value}\n`));
      expect(problem).toStartWith("config.toml line ");
      expect(problem).not.toContain("quote");
    },
  );

  test("a key written with dots or inside braces is found by its line", () => {
    expect(problemsOf(() => load('\nserver . "lisen" = "x"\n'))[0]).toStartWith(
      "config.toml line 2: server.lisen ",
    );
    expect(problemsOf(() => load('\nserver = { lisen = "x" }\n'))[0]).toStartWith(
      "config.toml line 2: server.lisen ",
    );
  });

  test.each(["server = 1", "server = []", "server = 1979-05-27", "[[server]]"])(
    "refuses %s for a section",
    (file) => {
      expect(problemsOf(() => load(file))).toEqual([
        "config.toml line 1: server is a section; write [server] and its keys below",
      ]);
    },
  );

  test.each(["constructor", "__proto__", "toString"])("the name %s is no key", (name) => {
    expect(problemsOf(() => load(`["${name}"]\nx = 1\n`))[0]).toContain(`${name} is not a known section`);
    expect({}).not.toHaveProperty("x");
  });

  test("a name that resembles nothing gets the list of what is known", () => {
    expect(problemsOf(() => load("[auth]\nsunshine = 1\n"))).toEqual([
      "config.toml line 2: auth.sunshine is not a known key. Known there: admin_email, registration, session_days",
    ]);
  });

  test("a mistake in the file counts even where the environment sets the key right", () => {
    const env = { MAILWRIGHT_LOG__LEVEL: "info" };
    expect(problemsOf(() => load('[log]\nlevel = "loud"\n', { env }))).toHaveLength(1);
  });

  test("no problem quotes a secret", () => {
    const shown = problemsOf(() =>
      defaultConfig({
        security: { master_key: "hush-1" },
        llm: { kind: "openai", api_key: "hush-2\n", base_url: "https://hush-3:hush-3@api.example.org" },
        outbound: { relay_url: "http://user:hush-4@host" },
        database: { url: "postgres://user:hush-5@host" },
      }),
    );
    expect(shown).toHaveLength(5);
    expect(shown.join("\n")).not.toContain("hush");
  });
});

describe("values", () => {
  refuses("server.listen", [
    "",
    "8080",
    ":8080",
    "0.0.0.0",
    "0.0.0.0:65536",
    "::1:80",
    "[::g]:80",
    "a b:80",
    "10.1:80",
  ]);
  accepts("server.listen", ["127.0.0.1:0", "[::]:8080", "localhost:80"]);
  refuses("smtp.listen", ["25", "mail.example.org"]);
  accepts("smtp.listen", ["", "[::1]:25"]);
  refuses("server.base_url", [
    "mail.example.org",
    "ftp://a.b",
    "https://a.b/path",
    "https://a.b?x",
    "https://u@a.b",
    " https://a.b",
    "https:a.b",
  ]);
  accepts("server.base_url", ["", "http://localhost:8080", "https://mail.example.org/"]);
  refuses("server.tls", ["on", "", "FILES"]);
  refuses("smtp.hostname", ["mail_1.example.org", "-a.b", "a..b", "1.2.3.4", "a.b.", "x".repeat(64)]);
  refuses("smtp.domain", ["example.org/", "@example.org"]);
  refuses("smtp.trusted_networks", [
    ["10.0.0.0/33"],
    ["localhost"],
    ["10.1"],
    ["::1/129"],
    [""],
    [1],
    "10.0.0.0/8",
  ]);
  accepts("smtp.trusted_networks", [[], ["127.0.0.1", "10.0.0.0/8", "::1", "fc00::/7"]]);
  refuses("server.trusted_proxies", [["proxy.lan"]]);
  refuses("egress.allow", [["http://ollama.lan"], ["ollama.lan:11434"], ["*.lan"]]);
  accepts("egress.allow", [["ollama.lan", "ollama", "10.0.5.0/24", "::1"]]);
  refuses("dns.servers", [["dns.example.org"], ["127.0.0.1:0"], ["127.0.0.1:99999"], ["127.0.0.1:x"]]);
  accepts("dns.servers", [["1.1.1.1", "127.0.0.1:5353", "[::1]:53", "::1"]]);
  refuses("smtp.max_message_bytes", ["1", 0, 1023, 2 ** 40, Number.NaN, Number.POSITIVE_INFINITY]);
  refuses("outbound.retry", [60, [-1], [Number.NaN]]);
  accepts("outbound.retry", [[], [0, 1.5]]);
  refuses("outbound.relay_url", [
    "host:25",
    "https://host",
    "smtp://",
    "smtp://host/path",
    "smtp://h?x=1",
    "smtp://u:50%@h",
    "smtp://u:50%ff@h",
    "smtp://me@example.org:pass@h:587",
    "smtp://u:p@ss@h",
  ]);
  accepts("outbound.relay_url", ["smtp://host", "smtps://user:p%40ss@host:465/", "smtp://[::1]:25"]);
  refuses("auth.admin_email", ["me"]);
  refuses("database.url", ["mailwright.db", "postgres://host/db", "sqlite:"]);
  refuses("data.dir", ["", 1]);
  refuses("security.master_key", ["abc", Buffer.alloc(31).toString("base64"), MASTER_KEY.slice(0, -1)]);
  accepts("security.master_key", ["", MASTER_KEY]);
  refuses("plans.default", ["gold"]);
  refuses("llm.kind", ["gpt"]);
  refuses("llm.model", ["two\nlines", "x".repeat(4097), null]);
  refuses("llm.models", ["small", [""], [" "], [1]]);
  refuses("routing.concurrency", [0, 1.5, "8"]);
  refuses("routing.hard_cap_seconds", [-1, 86_401]);
  refuses("limits.same_body_per_hour", [-1]);
  refuses("log.format", ["xml"]);
  refuses("billing.topup_credits", [0, -1, 0.5]);
});

describe("keys that need each other", () => {
  needs("outbound.mode", { outbound: { mode: "relay" } }, { outbound: { relay_url: "smtp://host:25" } });
  needs("server.tls", { server: { tls: "files", key: "k.pem" } }, { server: { cert: "c.pem" } });
  needs("server.tls", { server: { tls: "files", cert: "c.pem" } }, { server: { key: "k.pem" } });
  needs("server.cert", { server: { cert: "c.pem" } }, { server: { key: "k.pem" } });
  needs("server.key", { server: { key: "k.pem" } }, { server: { cert: "c.pem" } });
  needs(
    "llm.kind",
    { llm: { kind: "openai_compatible" } },
    { llm: { base_url: "http://ollama.lan:8000/v1" } },
  );
  for (const kind of ["openai", "anthropic", "google", "mistral", "groq", "openrouter"] as const) {
    needs("llm.kind", { llm: { kind } }, { llm: { api_key: "sk-1" } });
  }
  needs("llm.model", { llm: { model: "small" } }, { llm: { kind: "demo" } });
  needs("llm.models", { llm: { models: ["small"] } }, { llm: { kind: "demo" } });
  needs("llm.api_key", { llm: { api_key: "sk-1" } }, { llm: { kind: "openai" } });
  needs("llm.base_url", { llm: { base_url: "https://api.example.org" } }, { llm: { kind: "ollama" } });
  needs(
    "billing.stripe_secret_key",
    { billing: { stripe_secret_key: "sk_live_1" } },
    { billing: { stripe_webhook_secret: "whsec_1" } },
  );
  needs(
    "billing.price_team_year",
    { billing: { price_pro_month: "price_1", price_team_year: "price_1" } },
    { billing: { price_team_year: "price_2" } },
  );
  needs(
    "routing.sync_budget_seconds",
    { routing: { hard_cap_seconds: 60 } },
    { routing: { sync_budget_seconds: 60 } },
  );

  test.each(["trusted_networks", "trusted_relays", "proxy_protocol"])(
    "the whole internet is not believed by smtp.%s",
    (name) => {
      const end = name === "trusted_relays" ? "=mx.example.org" : "";
      for (const network of ["0.0.0.0/0", "::/0"]) {
        const problems = problemsOf(() =>
          defaultConfig({ smtp: { [name]: ["192.0.2.0/24", network].map((one) => one + end) } }),
        );
        expect(problems).toHaveLength(1);
        expect(problems[0]).toContain(`smtp.${name} has a network that is the whole internet (/0)`);
      }
      defaultConfig({ smtp: { [name]: [`10.0.0.0/8${end}`] } });
    },
  );

  test("the problem names the place of the key that needs the other", () => {
    expect(problemsOf(() => load('[outbound]\n\nmode = "relay"\n'))).toEqual([
      'config.toml line 3: outbound.mode is "relay", so outbound.relay_url must be set, such as "smtp://user:password@host:587"',
    ]);
    expect(
      problemsOf(() => load("", { env: { MAILWRIGHT_ROUTING__HARD_CAP_SECONDS: "60" } }))[0],
    ).toStartWith("MAILWRIGHT_ROUTING__HARD_CAP_SECONDS: routing.sync_budget_seconds must not be more");
  });

  test.each([["./data"], ["./data/programs"], ["/srv/mail/data/x"]])(
    "programs have no place in the data folder: %s",
    (dir) => {
      const data = dir.startsWith("/") ? { dir: "/srv/mail/data" } : {};
      expect(problemsOf(() => defaultConfig({ data, mcp: { dir } }))[0]).toContain(
        "mcp.dir is in the data folder",
      );
      for (const fine of ["", "./programs", "/srv/mail/data-programs", "/srv/mail"])
        defaultConfig({ data, mcp: { dir: fine } });
    },
  );

  test("a wrong value is one problem, not a missing value besides", () => {
    const problems = problemsOf(() => defaultConfig({ outbound: { mode: "relay", relay_url: "host:25" } }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("outbound.relay_url must be");
    expect(problems[0]).toContain("%23");
  });

  const SAME: [claim: string, overrides: ConfigOverrides, blamed: string][] = [
    [
      "both at one address",
      { server: { listen: "127.0.0.1:25" }, smtp: { listen: "127.0.0.1:25" } },
      "smtp.listen",
    ],
    [
      "one at all addresses",
      { server: { listen: "0.0.0.0:25" }, smtp: { listen: "127.0.0.1:25" } },
      "smtp.listen",
    ],
    [
      "one at all of IPv6",
      { smtp: { listen: "192.0.2.1:25" }, metrics: { listen: "[::]:25" } },
      "metrics.listen",
    ],
    [
      "the door of the authority",
      { server: { tls: "acme", listen: "0.0.0.0:80", base_url: "https://mx.example.org" } },
      "acme.listen",
    ],
  ];
  test.each(SAME)("two doors on one port are refused: %s", (_claim, overrides, blamed) => {
    const problems = problemsOf(() => defaultConfig(overrides));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^\\w+: ${blamed} is the same port as \\w+\\.listen: give one`));
  });

  const APART: ConfigOverrides[] = [
    { server: { listen: "127.0.0.1:0" }, smtp: { listen: "127.0.0.1:0" } },
    { server: { listen: "127.0.0.1:25" }, smtp: { listen: "127.0.0.2:25" } },
    { server: { listen: "0.0.0.0:25" }, smtp: { listen: "[::1]:25" } },
    // Open only where certificates are got.
    { server: { listen: "0.0.0.0:80" } },
  ];
  test.each(APART.map((overrides) => [overrides]))("doors that are apart are taken: %j", (overrides) => {
    expect(() => defaultConfig(overrides)).not.toThrow();
  });

  test("a second @ in the address of the relay is told with its mend, and not quoted", () => {
    const [problem] = problemsOf(() => load('[outbound]\nrelay_url = "smtp://u:hush@5@host:587"\n'));
    expect(problem).toBe(
      "config.toml line 2: outbound.relay_url has more than one @: write each that belongs to the user or the password as %40",
    );
  });

  test("local and built-in models need neither key nor address", () => {
    for (const kind of ["ollama", "demo", ""] as const) {
      expect(defaultConfig({ llm: { kind } }).llm.kind).toBe(kind);
    }
  });
});

test("secrets are hidden when the configuration is shown, and nothing else is", () => {
  const config = defaultConfig({
    security: { master_key: MASTER_KEY },
    llm: { kind: "openai", api_key: "hush", model: "small" },
    outbound: { mode: "relay", relay_url: "smtp://user:hu%40sh@host:587" },
  });
  const expected = structuredClone(config);
  expected.security.master_key = "***";
  expected.llm.api_key = "***";
  expected.outbound.relay_url = "smtp://user:***@host:587";
  expect(maskedConfig(config)).toEqual(expected);
  expect(maskedConfig(defaultConfig())).toEqual(defaultConfig());
});

test("a relay password is hidden however it is written", () => {
  const shown = (relay_url: string) => maskedConfig(defaultConfig({ outbound: { relay_url } }))["outbound"];
  for (const url of ["smtp://u:hush@h", "smtp://:hush@h:25", "SMTPS://u:hu:sh@[::1]:465/"]) {
    expect(JSON.stringify(shown(url))).not.toContain("sh@");
    expect(JSON.stringify(shown(url))).toContain("***@");
  }
});

test("splits listen addresses into host and port", () => {
  expect(splitListen("0.0.0.0:8080")).toEqual({ host: "0.0.0.0", port: 8080 });
  expect(splitListen("[::1]:0")).toEqual({ host: "::1", port: 0 });
  expect(splitListen("mail.example.org:25")).toEqual({ host: "mail.example.org", port: 25 });
  expect(splitListen("nonsense")).toBeUndefined();
});

test("the closest name is a slip away, or there is none", () => {
  expect(closestName("lisetn", ["hostname", "listen"])).toBe("listen");
  expect(closestName("listen", ["hostname", "listen"])).toBe("listen");
  expect(closestName("sunshine", ["hostname", "listen"])).toBeUndefined();
  expect(closestName("", [])).toBeUndefined();
  expect(closestName("x".repeat(100_000), ["listen"])).toBeUndefined();
});

test("a trusted relay is a network with the name that it writes, and nothing else", () => {
  const relays = (entry: string) => load(`[smtp]\ntrusted_relays = ["${entry}"]\n`).smtp.trusted_relays;
  for (const entry of ["192.0.2.7=mx.example.org", "2001:db8::/48=front_1", "10.0.0.0/8=mx"])
    expect(relays(entry)).toEqual([entry]);
  for (const entry of [
    "192.0.2.7",
    "192.0.2.7=",
    "=mx",
    "mx.example.org=192.0.2.7",
    "192.0.2.7=a=b",
    "10.0.0.1=a b",
  ])
    expect(() => relays(entry)).toThrow('such as "192.0.2.7=mx.example.org"');
});

describe("config.example.toml", () => {
  test("is valid as it stands and changes nothing", () => {
    expect(load(example)).toEqual(defaultConfig());
  });

  test("shows every key with its default, and no other", () => {
    const shown = flat(parse(uncommented(example)));
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries([...KEYS].map(([path, key]) => [path, key.default])),
    );
    expect([...shown.keys()]).toEqual([...KEYS.keys()]);
  });

  test("says what every key means in the lines above it; the plans share one such text", () => {
    const lines = (example as string).split("\n");
    const bare = lines.slice(0, lines.indexOf("[plans.free]")).concat(lines.slice(lines.indexOf("[limits]")));
    const unexplained = bare.filter((line, index) => {
      const above = bare[index - 1] ?? "";
      return isKeyLine(line) && (!above.startsWith("# ") || isKeyLine(above));
    });
    expect(unexplained).toEqual([]);
  });
});

describe("mailwright config", () => {
  test("check says that a good file is valid and which one it is", async () => {
    using folder = emptyFolder();
    folder.write("good.toml", "[log]\n");
    expect(await run(folder.path, ["check", "--config", "good.toml"])).toEqual({
      out: "Configuration is valid. File: good.toml\n",
      err: "",
    });
    const { out } = await run(folder.path, ["check", "--json"]);
    expect(JSON.parse(out)).toEqual({ valid: true, file: null, problems: [] });
  });

  test("check throws what is wrong, and prints it as data when asked to", async () => {
    using folder = emptyFolder();
    folder.write("config.toml", "[log]\nlevle = 1\n");
    const problem = "config.toml line 2: log.levle is not a known key. Did you mean log.level?";
    const plain = await run(folder.path, ["check"]);
    expect(plain).toEqual({ out: "", err: `The configuration has a problem:\n  - ${problem}\n` });
    const { out, err } = await run(folder.path, ["check", "--json"]);
    expect(JSON.parse(out)).toEqual({ valid: false, file: "config.toml", problems: [problem] });
    expect(err).toContain(problem);
  });

  test("check looks for the files and folders that are named, and says what to do", async () => {
    using folder = emptyFolder();
    folder.write(
      "config.toml",
      [
        "[server]",
        'tls = "files"',
        'cert = "gone.pem"',
        'key = "note.txt"',
        "[acme]",
        'ca_file = "."',
        "[backup]",
        'dir = "disk/backups"',
      ].join("\n"),
    );
    folder.write("note.txt", "no key at all");
    const { out } = await run(folder.path, ["check", "--json"]);
    const at = (name: string) => join(folder.path, name);
    expect(JSON.parse(out).problems).toEqual([
      `config.toml line 3: server.cert is ${at("gone.pem")}, and there is no such file. Put it there, or name the right one`,
      `config.toml line 4: server.key is ${at("note.txt")}, which holds no PEM block. Name a file in PEM form`,
      expect.stringContaining(`config.toml line 6: acme.ca_file is ${folder.path}, which cannot be read`),
      `config.toml line 8: backup.dir is in ${at("disk")}, and there is no such folder. Mount the disk or make that folder; the server makes only the last one`,
    ]);
    mkdirSync(at("disk"));
    const authority = await createAuthority();
    const [one, other] = [await authority.issue("mx.test"), await authority.issue("mx.test")];
    folder.write("gone.pem", one.cert);
    folder.write("note.txt", other.key);
    folder.write(
      "config.toml",
      '[server]\ntls="files"\ncert="gone.pem"\nkey="note.txt"\n[backup]\ndir="disk/b"\n',
    );
    expect((await run(folder.path, ["check"])).err).toContain(
      "config.toml line 3: server.cert is of no use with server.key. The private key does not belong to the certificate.",
    );
    folder.write("note.txt", one.key);
    const right = await run(folder.path, ["check"]);
    expect(right).toEqual({ out: "Configuration is valid. File: config.toml\n", err: "" });
  });

  test("check looks for the programs of tool servers", async () => {
    using folder = emptyFolder();
    folder.write(
      "config.toml",
      [
        "[mcp.stdio.files]",
        'command = "/nonexistent/program"',
        "[mcp.stdio.names]",
        'command = "no-such-program"',
        'env = { PATH = "/nowhere" }',
        "[mcp.stdio.right]",
        `command = "${process.execPath}"`,
        "[mcp.stdio.own]",
        'command = "./in-its-own-folder"',
      ].join("\n"),
    );
    const { out } = await run(folder.path, ["check", "--json"]);
    expect(JSON.parse(out).problems).toEqual([
      "config.toml line 2: mcp.stdio.files.command is /nonexistent/program, and there is no program of that name that this user may run. Install it, or name the right one by its whole path",
      "config.toml line 4: mcp.stdio.names.command is no-such-program, and no such program is in /nowhere. Install it, or name the right one by its whole path",
    ]);
  });

  test.each([
    ["https://mx.test", "", true],
    ["https://other.test:8443", "", false],
    ["https://192.0.2.7", "", false],
    ["http://other.test", "", true],
    ["https://other.test", 'trusted_proxies = ["127.0.0.1"]', true],
  ])("check says whether a certificate for mx.test is one for %s, with %p", async (base_url, more, fits) => {
    using folder = emptyFolder();
    const { cert, key } = await (await createAuthority()).issue("mx.test");
    folder.write("cert.pem", cert);
    folder.write("key.pem", key);
    const server = `[server]\ntls="files"\ncert="cert.pem"\nkey="key.pem"\nbase_url="${base_url}"\n${more}\n`;
    folder.write("config.toml", server);
    const { out } = await run(folder.path, ["check", "--json"]);
    const words = `config.toml line 3: server.cert is for mx.test, and not for ${new URL(base_url).hostname}, the host of server.base_url: browsers refuse it there. Name one for that name, or mend server.base_url`;
    expect(JSON.parse(out).problems).toEqual(fits ? [] : [words]);
  });

  test("check says what is set only by half, with which a server starts all the same", async () => {
    using folder = emptyFolder();
    folder.write(
      "config.toml",
      [
        "[integrations.codehost-b]",
        'client_id = "ours"',
        'token_url = "https://git.example.org/oauth/token"',
        "[integrations.notes]",
        'client_secret = "hush"',
        "[integrations.codehost-a]",
        'api_base = "https://git.example.org/api/v3"',
        "[billing]",
        'price_topup = "price_1"',
      ].join("\n"),
    );
    const { out } = await run(folder.path, ["check", "--json"]);
    const missing = ["client_secret", "authorize_url", "api_base"].map(
      (key) => `integrations.codehost-b.${key}`,
    );
    expect(JSON.parse(out).problems).toEqual([
      `config.toml line 2: integrations.codehost-b.client_id is of no use without ${missing.join(" and ")}. Set what is missing`,
      "config.toml line 5: integrations.notes.client_secret is of no use without integrations.notes.client_id. Set what is missing",
      "config.toml line 9: billing.price_topup is of no use without billing.stripe_secret_key. Set that too",
    ]);
    expect((await run(folder.path, ["dump"])).err).toBe("");
  });

  test("example prints the example file", async () => {
    using folder = emptyFolder();
    expect((await run(folder.path, ["example"])).out).toBe(example);
  });

  test("dump shows what is in effect, as TOML that can be read back or as JSON, without secrets", async () => {
    using folder = emptyFolder();
    folder.write(
      "config.toml",
      '[llm]\nkind = "openai"\napi_key = "hush"\n[smtp]\nhostname = "mx.example.org"\n',
    );
    const expected = maskedConfig(loadConfig({ env: {}, cwd: folder.path }));
    const toml = (await run(folder.path, ["dump"])).out;
    expect(load(toml)).toEqual(expected as never);
    expect(JSON.parse((await run(folder.path, ["dump", "--json"])).out)).toEqual(expected);
    expect(toml).not.toContain("hush");
    expect(toml).toContain('api_key = "***"');
  });
});

function emptyFolder() {
  const path = mkdtempSync(join(tmpdir(), "mailwright-config-"));
  return {
    path,
    write: (name: string, text: string) => writeFileSync(join(path, name), text),
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  };
}

/** Loads `config.toml` with this text from a folder of its own. */
function load(file: string, sources: ConfigSources = {}) {
  using folder = emptyFolder();
  folder.write("config.toml", file);
  return loadConfig({ env: {}, cwd: folder.path, ...sources });
}

function problemsOf(attempt: () => unknown): string[] {
  try {
    attempt();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error("nothing was refused");
}

function refuses(path: string, values: unknown[]) {
  test.each(values.map((value) => [value]))(`${path} refuses %p`, (value) => {
    const problems = problemsOf(() => defaultConfig(at(path, value)));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`overrides: ${path} `);
  });
}

function accepts(path: string, values: unknown[]) {
  test.each(values.map((value) => [value]))(`${path} takes %p`, (value) => {
    expect(() => defaultConfig(at(path, value))).not.toThrow();
  });
}

/** `broken` is refused on account of `path`; together with `mend` it is right. */
function needs(path: string, broken: ConfigOverrides, mend: ConfigOverrides) {
  test(`${JSON.stringify(broken)} is refused until ${JSON.stringify(mend)} is added`, () => {
    const problems = problemsOf(() => defaultConfig(broken));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`overrides: ${path} `);
    const [section] = Object.keys(broken) as (keyof ConfigOverrides)[];
    if (section === undefined) throw new Error("a section is needed");
    expect(() => defaultConfig({ [section]: { ...broken[section], ...mend[section] } })).not.toThrow();
  });
}

/** `at("smtp.listen", 1)` is `{smtp: {listen: 1}}`; the value may be of the wrong type on purpose. */
function at(path: string, value: unknown): ConfigOverrides {
  return path.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as ConfigOverrides;
}

function isKeyLine(line: string): boolean {
  return /^# [a-z_]+ = /.test(line);
}

function uncommented(toml: string): string {
  return toml
    .split("\n")
    .map((line) => (isKeyLine(line) ? line.slice(2) : line))
    .join("\n");
}

function flat(table: object, prefix = ""): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [name, value] of Object.entries(table) as [string, unknown][]) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      values.set(`${prefix}${name}`, value);
    else for (const [path, inner] of flat(value, `${prefix}${name}.`)) values.set(path, inner);
  }
  return values;
}

/** Runs the command in a process of its own, as main does: what is thrown goes to standard error. */
async function run(cwd: string, args: string[]) {
  const script = `
    import { configCommand } from ${JSON.stringify(CLI)};
    configCommand().parseAsync(${JSON.stringify(args)}, { from: "user" }).catch((error) => console.error(error.message));
  `;
  const env = { PATH: process.env["PATH"], HOME: cwd };
  const child = Bun.spawn([process.execPath, "-e", script], { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err };
}

test("a mail is tried for four to five days before it is returned (RFC 5321 §4.5.4.1)", () => {
  const days = defaultConfig().outbound.retry.reduce((sum, seconds) => sum + seconds) / 86_400;
  expect(days).toBeWithin(4, 5);
});

test("the schedules of retries that the pages state are those of the configuration", async () => {
  const { outbound, webhooks } = defaultConfig();
  const said = async (page: string) =>
    (await Bun.file(join(import.meta.dir, "../../docs", page)).text()).replaceAll(/\s+/g, " ");
  expect(await said("mail.md")).toContain(`is asked again after ${spansInWords(outbound.retry)} `);
  expect(await said("webhooks.md")).toContain(
    `is tried again after ${spansInWords(webhooks.backoff.slice(1))}.`,
  );
});
