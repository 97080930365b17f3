import { join } from "node:path";
import { Glob } from "bun";
import ts from "typescript-5";

const SRC = join(import.meta.dir, "../../src");

/** `commit`: of the database. `file`: a change of files, or of their names. `effect`: something others are given or asked for. */
export type Kind = "commit" | "file" | "effect";

/** A call in the sources that makes something last, here or elsewhere. */
export interface Place {
  kind: Kind;
  /**
   * A commit by its file, its function and, from the second on, its number there; the changes of files and the effects of a
   * function each as one.
   */
  name: string;
  /** `inbound/receive.ts:68`. */
  line: string;
}

/** A call by its last name: `app.sender.send(…)` is one of `send`, for `sender`. */
interface Call {
  node: ts.CallExpression;
  name: string;
  /** The last name before it; "" for a name that stands alone, "()" for the value of another call. */
  of: string;
}

/** What is written to is no database. */
const STREAMS = new Set(["stdin", "stdout", "socket", "parser", "header", "out", "file"]);
const COMMITS = new Set(["write", "insist"]);
/** The calls of SQLite itself, in `db/`. */
const SQLITE = new Set(["sqlite", "lock", "snapshot", "()"]);
const SQL = new Set(["exec", "run"]);
/** What only looks at files: every other name of `node:fs` changes something. */
const LOOKS =
  /^(?:exists|read|stat|lstat|fstat|statfs|realpath|access|close|createReadStream|open(?:Sync)?$)/;
const OF_FILES = new Set(["sync", "datasync", "writev", "writeFile", "appendFile", "truncate", "chmod"]);
const FILE_HELPERS = new Set(["pipeline", "punch", "writeWhole", "writeOnce", "replaceFile", "syncFolder"]);
const SENDS = new Map<string, RegExp>(
  Object.entries({
    fetch: /^(?!http$)/,
    post: /^poster$/,
    send: /^(?:sender|smtp|kept|dialled)$/,
    sendMail: /^pool$/,
    call: /^tool$/,
    callTool: /./,
    askStripe: /^$/,
    askIfKnown: /^$/,
    write: /^stdin$/,
  }),
);
/** Reading a source costs thousands of times what this does. */
const WORTH_READING =
  /node:fs|\b(?:write|insist|sync|datasync|writev|pipeline|punch|fetch|sendMail|callTool|askStripe|askIfKnown)\s*[(<]|\b(?:poster|sender|smtp|tool|kept|dialled)\??\.(?:post|send|call)\b/;

/** Every place of the sources, but for the pages of the dashboard, which run in a browser. */
export async function placesInSource(): Promise<Place[]> {
  const names = [...new Glob("**/*.ts").scanSync(SRC)].filter((name) => !name.startsWith("dashboard/"));
  const texts = names.sort().map(async (name) => [name, await Bun.file(join(SRC, name)).text()] as const);
  return placesOf(await Promise.all(texts));
}

/** The places of these sources, each a path from `src/` and its text. */
export function placesOf(sources: (readonly [string, string])[]): Place[] {
  const isWorth = ([name, text]: readonly [string, string]): boolean =>
    name.startsWith("db/") || WORTH_READING.test(text);
  const { worth = [], rest = [] } = Object.groupBy(sources, (one) => (isWorth(one) ? "worth" : "rest"));
  const files = worth.map(parsed);
  const handing = new Set(files.flatMap(handOnIn));
  const callsOne = new RegExp(`\\b(?:${[...handing].join("|")})\\s*[(<]`);
  const more = rest.filter(([, text]) => callsOne.test(text)).map(parsed);
  return [...files, ...more].flatMap((file) => placesIn(file, handing));
}

function parsed([name, text]: readonly [string, string]): ts.SourceFile {
  return ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
}

/** `handing`: the functions that commit what they are given. */
function placesIn(file: ts.SourceFile, handing: ReadonlySet<string>): Place[] {
  const isKind: [Kind, (call: Call) => boolean][] = [
    ["commit", (call) => isCommit(file, call) || (call.of === "" && handing.has(call.name))],
    ["file", fileChanges(file)],
    ["effect", ({ name, of }) => SENDS.get(name)?.test(of) ?? false],
  ];
  const found: Place[] = [];
  const numbers = new Map<string, number>();
  for (const call of callsIn(file))
    for (const [kind] of isKind.filter(([, isOne]) => isOne(call))) {
      const name = `${file.fileName} ${functionAround(call.node)}`;
      const number = (numbers.get(`${kind} ${name}`) ?? 0) + 1;
      numbers.set(`${kind} ${name}`, number);
      const line = `${file.fileName}:${file.getLineAndCharacterOfPosition(call.node.expression.end).line + 1}`;
      if (kind === "commit") found.push({ kind, name: number === 1 ? name : `${name} ${number}`, line });
      else if (number === 1) found.push({ kind, name, line });
    }
  return found;
}

function isCommit(file: ts.SourceFile, { name, of, node }: Call): boolean {
  const inDb = file.fileName.startsWith("db/");
  if (inDb && (name === "transaction" || (SQL.has(name) && SQLITE.has(of)))) return true;
  if (!COMMITS.has(name) || STREAMS.has(of)) return false;
  // A function of that name in the same file is looked into itself.
  return of !== "" || !declaresFunction(file, name, node);
}

/** The functions that commit an operation that they are given, as `writeOutcome` does. */
function handOnIn(file: ts.SourceFile): string[] {
  const found = callsIn(file).filter((call) => isCommit(file, call));
  return found.flatMap(({ node }) => {
    const given = handed(node.arguments[0]);
    const around = topLevel(node);
    if (given === undefined || !ts.isFunctionDeclaration(around)) return [];
    const isGiven = around.parameters.some(({ name }) => name.getText() === given);
    return isGiven && around.name ? [around.name.text] : [];
  });
}

/** The name of an operation that is handed on as it is, or by a function that only calls it. */
function handed(operation: ts.Expression | undefined): string | undefined {
  if (operation === undefined) return undefined;
  if (ts.isIdentifier(operation)) return operation.text;
  const only =
    ts.isArrowFunction(operation) && ts.isCallExpression(operation.body) ? operation.body : undefined;
  return only && ts.isIdentifier(only.expression) ? only.expression.text : undefined;
}

function fileChanges(file: ts.SourceFile): (call: Call) => boolean {
  const imported = new Set(file.statements.flatMap(namesOfFs));
  return ({ name, of, node }) => {
    if (of === "" && imported.has(name))
      return name.startsWith("open") ? node.arguments[1]?.getText() !== '"r"' : !LOOKS.test(name);
    return (
      (of === "" && FILE_HELPERS.has(name)) ||
      (of !== "" && OF_FILES.has(name)) ||
      (name === "write" && (of === "file" || of === "Bun"))
    );
  };
}

function namesOfFs(statement: ts.Statement): string[] {
  if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
  if (!/^node:fs(?:\/promises)?$/.test(statement.moduleSpecifier.text)) return [];
  const names = statement.importClause?.namedBindings;
  return names && ts.isNamedImports(names) ? names.elements.map(({ name }) => name.text) : [];
}

function callsIn(file: ts.SourceFile): Call[] {
  const found: Call[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const callee = node.expression;
      if (ts.isIdentifier(callee)) found.push({ node, name: callee.text, of: "" });
      else if (ts.isPropertyAccessExpression(callee))
        found.push({ node, name: callee.name.text, of: lastName(callee.expression) });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function lastName(node: ts.Expression): string {
  if (ts.isIdentifier(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  return ts.isRegularExpressionLiteral(node) ? "//" : "()";
}

function declaresFunction(file: ts.SourceFile, name: string, call: ts.Node): boolean {
  if (file.statements.some((one) => ts.isFunctionDeclaration(one) && one.name?.text === name)) return true;
  let found = false;
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === name)
      found ||= node.initializer !== undefined && ts.isArrowFunction(node.initializer);
    ts.forEachChild(node, visit);
  };
  visit(topLevel(call));
  return found;
}

function functionAround(node: ts.Node): string {
  const around = topLevel(node);
  if (ts.isVariableStatement(around)) return around.declarationList.declarations[0]?.name.getText() ?? "";
  const isNamed = ts.isFunctionDeclaration(around) || ts.isClassDeclaration(around);
  return (isNamed && around.name?.text) || "";
}

function topLevel(node: ts.Node): ts.Node {
  let at = node;
  while (!ts.isSourceFile(at.parent)) at = at.parent;
  return at;
}

/** The lines that the innermost frames of a stack stand at; those that only wait say so. */
export function linesOf(stack: string): string[] {
  const frames = stack.split("\n").filter((frame) => !frame.includes("at async "));
  return frames.flatMap((frame) => /\/src\/([\w./-]+:\d+):\d+\)?$/.exec(frame)?.[1] ?? []);
}
