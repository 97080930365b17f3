interface Call {
  url: string;
  body: Record<string, unknown>;
  /** The files, which are read from the folder where the command is run. */
  files: { filename: string; content_type: string }[];
}

/** The longest argument: some shells take no more, so that a pipe is used beyond it. */
const MAX_ARGUMENT_CHARS = 50_000;

/** A call as a command for any POSIX shell, to be pasted as it is. */
export function curlOf({ url, body, files }: Call): string {
  const json = JSON.stringify(body);
  const head = [
    `curl ${quoted(url)} \\`,
    `  -H "X-API-Key: $KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
  ];
  if (files.length === 0 && json.length <= MAX_ARGUMENT_CHARS)
    return [...head, `  --data-binary ${quoted(json)}`].join("\n");
  return ["{", ...pieces(body, files), `} | ${head.join("\n")}`, "  --data-binary @-"].join("\n");
}

/** The bytes of a file stand between two pieces of JSON, as base64 without line breaks. */
function pieces(body: Record<string, unknown>, files: Call["files"]): string[] {
  if (files.length === 0) return [print(JSON.stringify(body))];
  const start = `${JSON.stringify(body).slice(0, -1)},"attachments":[`;
  const lines = files.flatMap(({ filename, content_type }, index) => {
    const opening = `${JSON.stringify({ filename, content_type }).slice(0, -1)},"data":"`;
    return [
      print(`${index === 0 ? start : '"},'}${opening}`),
      `  base64 < ${quoted(filename)} | tr -d '\\n'`,
    ];
  });
  return [...lines, print('"}]}')];
}

function print(text: string): string {
  return `  printf %s ${quoted(text)}`;
}

/** A text in single quotes, within which a shell changes nothing but a single quote. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
