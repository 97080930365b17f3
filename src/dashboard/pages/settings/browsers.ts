/** Names of browsers, in an order in which the first that fits is right: Edge also says Chrome, and Chrome Safari. */
const BROWSERS: [RegExp, string][] = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Headless)?(Chrome|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/iPhone/, "an iPhone"],
  [/iPad/, "an iPad"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "a Mac"],
  [/CrOS/, "a Chromebook"],
  [/Linux/, "Linux"],
];

/** The name of a browser as people say it: "Firefox on Windows". An unknown one stays as it is. */
export function browserName(user_agent: string): string {
  const named = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(user_agent))?.[1];
  const [browser, system] = [named(BROWSERS), named(SYSTEMS)];
  if (!browser) return user_agent || "A browser without a name";
  return system ? `${browser} on ${system}` : browser;
}
