import ts from "typescript-5";

import type { Pattern } from "./linear.ts";

export interface FoundPattern {
  line: number;
  /** Null for one that is put together of what only a run would tell. */
  pattern: Pattern | null;
  text: string;
}

/** Numbers as they stand in a text. */
type Value = string | Pattern | string[];

/** Every pattern in a source file: those between slashes, and those made of its constants. */
export function patternsIn(filename: string, text: string): FoundPattern[] {
  const source = ts.createSourceFile(filename, text, ts.ScriptTarget.Latest, true);
  const constants = new Map<string, ts.Expression>();
  const found: FoundPattern[] = [];
  const add = (node: ts.Node, pattern: Pattern | null): void => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push({ line: line + 1, pattern, text: node.getText() });
  };
  const collect = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      if (node.parent.flags & ts.NodeFlags.Const) constants.set(node.name.text, node.initializer);
    ts.forEachChild(node, collect);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) add(node, literalOf(node));
    else if (isConstructed(node)) add(node, constructed(node, constants));
    ts.forEachChild(node, visit);
  };
  collect(source);
  visit(source);
  return found;
}

function literalOf({ text }: ts.RegularExpressionLiteral): Pattern {
  const end = text.lastIndexOf("/");
  return { source: text.slice(1, end), flags: text.slice(end + 1) };
}

function isConstructed(node: ts.Node): node is ts.NewExpression | ts.CallExpression {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === "RegExp";
}

function constructed(
  { arguments: args }: ts.NewExpression | ts.CallExpression,
  constants: Map<string, ts.Expression>,
): Pattern | null {
  const [first, second] = args ?? [];
  const source = first && valueOf(first, constants);
  const flags = second ? valueOf(second, constants) : "";
  if (typeof flags !== "string") return null;
  if (isPattern(source)) return second ? { ...source, flags } : source;
  return typeof source === "string" ? { source, flags } : null;
}

function isPattern(value: Value | undefined): value is Pattern {
  return typeof value === "object" && "source" in value;
}

/** Undefined for whatever is not told by constants of the same file. */
function valueOf(node: ts.Expression, constants: Map<string, ts.Expression>): Value | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isNumericLiteral(node)) return String(Number(node.text));
  if (ts.isRegularExpressionLiteral(node)) return literalOf(node);
  if (ts.isIdentifier(node)) {
    const constant = constants.get(node.text);
    return constant && valueOf(constant, constants);
  }
  if (ts.isTemplateExpression(node)) return templateOf(node, constants, (part) => part.text);
  if (ts.isTaggedTemplateExpression(node)) return rawOf(node, constants);
  if (ts.isArrayLiteralExpression(node)) return listOf(node, constants);
  if (ts.isPropertyAccessExpression(node)) return sourceOf(node, constants);
  return ts.isCallExpression(node) ? joined(node, constants) : undefined;
}

function sourceOf(
  { name, expression }: ts.PropertyAccessExpression,
  constants: Map<string, ts.Expression>,
): string | undefined {
  const pattern = name.text === "source" ? valueOf(expression, constants) : undefined;
  return isPattern(pattern) ? pattern.source : undefined;
}

function listOf(
  { elements }: ts.ArrayLiteralExpression,
  constants: Map<string, ts.Expression>,
): string[] | undefined {
  const items = elements.map((item) => valueOf(item, constants));
  return items.every((item) => typeof item === "string") ? items : undefined;
}

function joined(node: ts.CallExpression, constants: Map<string, ts.Expression>): string | undefined {
  const { expression, arguments: args } = node;
  if (!ts.isPropertyAccessExpression(expression) || expression.name.text !== "join") return undefined;
  const list = valueOf(expression.expression, constants);
  const mark = args[0] && valueOf(args[0], constants);
  return Array.isArray(list) && typeof mark === "string" ? list.join(mark) : undefined;
}

function rawOf(
  { tag, template }: ts.TaggedTemplateExpression,
  constants: Map<string, ts.Expression>,
): string | undefined {
  if (tag.getText() !== "String.raw") return undefined;
  const raw = (part: ts.TemplateLiteralLikeNode): string => part.rawText ?? part.text;
  return ts.isNoSubstitutionTemplateLiteral(template) ? raw(template) : templateOf(template, constants, raw);
}

function templateOf(
  { head, templateSpans }: ts.TemplateExpression,
  constants: Map<string, ts.Expression>,
  textOf: (part: ts.TemplateLiteralLikeNode) => string,
): string | undefined {
  const values = templateSpans.map(({ expression }) => valueOf(expression, constants));
  if (!values.every((value) => typeof value === "string")) return undefined;
  return textOf(head) + templateSpans.map(({ literal }, at) => `${values[at]}${textOf(literal)}`).join("");
}
