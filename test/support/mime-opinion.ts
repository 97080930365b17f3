const PYTHON = "/usr/bin/python3";

export const hasMimeOpinion =
  Bun.which(PYTHON) !== null &&
  Bun.spawnSync([PYTHON, "-c", "import email.policy"], { stderr: "ignore" }).success;

/** One leaf of a mail: its type, and its decoded bytes as Latin-1. */
export interface Leaf {
  type: string;
  content: string;
}

/** The leaves of each mail as another program reads them, in the order of the mail. */
export function mimeOpinions(mails: Buffer[]): Leaf[][] {
  const run = Bun.spawnSync([PYTHON, "-c", SCRIPT], {
    stdin: Buffer.from(JSON.stringify(mails.map((mail) => mail.toString("base64")))),
    stderr: "inherit",
  });
  return JSON.parse(run.stdout.toString()) as Leaf[][];
}

const SCRIPT = `
import base64, email, email.policy, json, sys
def leaves(raw):
    mail = email.message_from_bytes(raw, policy=email.policy.compat32)
    found = []
    for part in mail.walk():
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True) or b""
        found.append({"type": part.get_content_type(), "content": content.decode("latin-1")})
    return found
print(json.dumps([leaves(base64.b64decode(raw)) for raw in json.load(sys.stdin)]))
`;
