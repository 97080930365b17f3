export interface MailParts {
  from?: string;
  to?: string;
  subject?: string;
  text?: string;
  html?: string;
  attachments?: { filename: string; content_type?: string; content: string | Uint8Array }[];
  /** Written first, as given; a name with several values is repeated. */
  headers?: Record<string, string | string[]>;
}

/** A raw mail with CRLF line ends. Texts are sent as 8-bit UTF-8, files as base64. */
export function rawMail(mail: MailParts): Buffer {
  const {
    from = "Ann <ann@example.com>",
    to = "desk@mail.example",
    subject = "Hello",
    attachments = [],
  } = mail;
  const head = Object.entries({
    Date: "Thu, 15 Jan 2026 10:00:00 +0000",
    "Message-ID": "<one@example.com>",
    ...mail.headers,
  }).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}`));
  head.push(`From: ${from}`, `To: ${to}`, `Subject: ${subject}`, "MIME-Version: 1.0");
  const files = attachments.map(filePart);
  const body = textParts(mail);
  const content = files.length === 0 ? body : multipart("mixed", "=_mixed", [body, ...files]);
  return Buffer.from(`${head.join("\r\n")}\r\n${content}`.replace(/\r?\n/g, "\r\n"));
}

/** A part: its header fields, a blank line, its content. */
export function multipart(kind: string, boundary: string, parts: string[]): string {
  const inner = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("");
  return `Content-Type: multipart/${kind}; boundary="${boundary}"\r\n\r\n${inner}--${boundary}--\r\n`;
}

function textParts({ text, html }: MailParts): string {
  const part = (kind: string, content: string): string =>
    `Content-Type: text/${kind}; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${content}`;
  if (html === undefined) return part("plain", text ?? "");
  if (text === undefined) return part("html", html);
  return multipart("alternative", "=_alternative", [part("plain", text), part("html", html)]);
}

function filePart({
  filename,
  content_type = "application/octet-stream",
  content,
}: NonNullable<MailParts["attachments"]>[number]): string {
  const base64 = Buffer.from(content).toString("base64").replace(/.{76}/g, "$&\r\n");
  return `Content-Type: ${content_type}\r\nContent-Disposition: attachment; filename="${filename}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}`;
}

/** A delivery status notification (RFC 3464); `from` as whole header lines. */
export function notification(
  report: { from?: string[]; action?: string; status?: string; said?: string; body?: string } = {},
): Buffer {
  const { from = ["From: MAILER-DAEMON"], action = "failed", status = "5.1.1" } = report;
  const lines = [
    ...from,
    "Subject: Undelivered mail",
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
    "",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mail.example.com",
    "",
    "Final-Recipient: rfc822; ada@example.com",
    `Action: ${action}`,
    `Status: ${status}`,
    ...(report.said === undefined ? [] : [`Diagnostic-Code: ${report.said}`]),
    "",
    "--b--",
    "",
  ];
  return Buffer.from(report.body ?? lines.join("\r\n"));
}

/** The words of a text part, whose lines are folded somewhere. */
export function unfolded(text = ""): string {
  return text.replaceAll(/\s+/g, " ");
}
