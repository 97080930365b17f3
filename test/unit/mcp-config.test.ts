import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, defaultConfig, loadConfig, maskedConfig } from "../../src/config/config.ts";

const FILES = { command: "files", args: ["/srv"], env: { TOKEN: "hush" }, accounts: ["ada@example.org"] };

describe("[mcp.stdio.NAME]", () => {
  test("is none unless the operator writes one", () => {
    expect(defaultConfig().mcp.stdio).toEqual({});
  });

  test("is read with its defaults from a file", () => {
    const file = `
      [mcp.stdio.files]
      command = "files"
      args = ["/srv"]
      accounts = ["ada@example.org"]
      env = { TOKEN = "hush" }
      [mcp.stdio.memory-2]
      command = "memory"`;
    const memory = { command: "memory", args: [], env: {}, accounts: [] };
    expect(load(file).mcp.stdio).toEqual({ files: FILES, "memory-2": memory });
  });

  test("is read from the environment, over the file, with secrets from files", () => {
    const env = {
      MAILWRIGHT_MCP__STDIO__FILES__COMMAND: "files",
      MAILWRIGHT_MCP__STDIO__FILES__ARGS: "/srv",
      MAILWRIGHT_MCP__STDIO__FILES__ACCOUNTS: "ada@example.org",
      MAILWRIGHT_MCP__STDIO__FILES__ENV__TOKEN__FILE: "token",
      MAILWRIGHT_MCP__STDIO__FILES__ENV__Mixed_case: "kept",
    };
    const files = { ...FILES, env: { TOKEN: "hush", Mixed_case: "kept" } };
    expect(load(`[mcp.stdio.files]\ncommand = "other"`, env).mcp.stdio).toEqual({ files });
  });

  test("is shown without the values of its variables", () => {
    const shown = maskedConfig(defaultConfig({ mcp: { stdio: { files: FILES } } }));
    expect(shown["mcp"]).toEqual({ dir: "", stdio: { files: { ...FILES, env: { TOKEN: "***" } } } });
  });

  test.each([
    [`[mcp.stdio.files]\nargs = []`, "config.toml line 1: mcp.stdio.files needs command, which is not given"],
    [
      `[mcp.stdio.files]\ncommand = ""`,
      "config.toml line 1: mcp.stdio.files needs command, which is not given",
    ],
    [
      `[mcp.stdio.files]\ncommand = "a"\ncomand = "b"`,
      "config.toml line 3: mcp.stdio.files.comand is not a known key. Did you mean mcp.stdio.files.command?",
    ],
    [
      `\n[mcp.stdio."My Files"]\ncommand = "a"`,
      `config.toml line 2: mcp.stdio.My Files must be a name of lower-case letters, digits, "-" and single "_", such as "files", not "My Files"`,
    ],
    [
      `[mcp.stdio.files]\ncommand = 1`,
      "config.toml line 2: mcp.stdio.files.command must be a program, by name or path, written in quotes, not 1",
    ],
    [
      `[mcp.stdio.files]\ncommand = "a"\naccounts = ["everybody"]`,
      `config.toml line 3: mcp.stdio.files.accounts entry 1 must be the mail address of an account, or "*" for all of them, not "everybody"`,
    ],
    [
      `[mcp.stdio.files]\ncommand = "a"\nenv = { TOKEN = 12345 }`,
      "config.toml line 3: mcp.stdio.files.env.TOKEN must be text, written in quotes",
    ],
    [
      `[mcp.stdio.files]\ncommand = "a"\nenv = { "A-B" = "x" }`,
      `config.toml line 3: mcp.stdio.files.env.A-B must be the name of an environment variable, such as "API_TOKEN", not "A-B"`,
    ],
    [
      `[mcp.stdio.Files]\ncommand = "a"`,
      `config.toml line 1: mcp.stdio.Files must be a name of lower-case letters, digits, "-" and single "_", such as "files", not "Files"`,
    ],
    [`[mcp]\nstdio = 1`, "config.toml line 2: mcp.stdio is a section; write [mcp.stdio] and its keys below"],
    [
      `[mcp.stdio]\nfiles = "a"`,
      "config.toml line 2: mcp.stdio.files is a section; write [mcp.stdio.files] and its keys below",
    ],
  ])("refuses %j in one sentence with its place", (file, problem) => {
    expect(problemsOf(() => load(file))).toEqual([problem]);
  });

  test.each(["__proto__", "constructor"])("cannot be called %s", (name) => {
    expect(problemsOf(() => load(`[mcp.stdio."${name}"]\ncommand = "a"`))).toHaveLength(
      name === "constructor" ? 0 : 1,
    );
  });

  test.each([
    ["MAILWRIGHT_MCP__STDIO__FILES__COMAND", "no key is set by this variable"],
    ["MAILWRIGHT_MCP__STDIO__FILES", "no key is set by this variable"],
    ["MAILWRIGHT_MCP__STDIO__FILES__ENV", "no key is set by this variable"],
    ["MAILWRIGHT_MCP__STDIO__2__COMMAND", "must be a name of lower-case letters"],
  ])("refuses the variable %s", (name, words) => {
    const problems = problemsOf(() => load("", { [name]: "hush" }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`${name}: `);
    expect(problems[0]).toContain(words);
    expect(problems[0]).not.toContain("hush");
  });
});

function load(file: string, env: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(tmpdir(), "mailwright-config-"));
  writeFileSync(join(cwd, "config.toml"), file);
  writeFileSync(join(cwd, "token"), "hush\n");
  try {
    return loadConfig({ env, cwd });
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

function problemsOf(attempt: () => unknown): string[] {
  try {
    attempt();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
