/** The instruction of the demo, the same by mail and over HTTP. */
export const INSTRUCTION = "Which dates and numbers matter in this report?";

export const REPORT = {
  filename: "report.txt",
  content_type: "text/plain",
  text: [
    "Harbour office, third quarter.",
    "The numbers are in: 412 ships called at the harbour, 38 more than a year ago.",
    "Two cranes stood still for nine days in August because a bearing had to be replaced.",
    "The new quay opens on the 14th of November, and the mayor will cut the ribbon.",
    "Gulls have been noisy again.",
    "The budget for repairs is used up to 91 percent, so the report asks for 20,000 more before the year ends.",
  ].join("\n\n"),
};

/** Returns a mail as a person's mail program would send it, with the report attached. */
export function demoMail(from: string, to: string, date: Date): Buffer {
  const boundary = "=_harbour";
  const parts = [
    `Content-Type: text/plain; charset=utf-8\n\n${INSTRUCTION}\n`,
    [
      `Content-Type: ${REPORT.content_type}; charset=utf-8`,
      `Content-Disposition: attachment; filename="${REPORT.filename}"`,
      "Content-Transfer-Encoding: base64",
      "",
      Buffer.from(REPORT.text).toString("base64").replace(/.{76}/g, "$&\n"),
      "",
    ].join("\n"),
  ];
  const lines = [
    `From: You <${from}>`,
    `To: ${to}`,
    "Subject: Quarterly report",
    `Date: ${date.toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${Bun.randomUUIDv7()}@example.com>`,
    "MIME-Version: 1.0",
    `Content-Type: multipart/mixed; boundary="${boundary}"`,
    "",
    ...parts.map((part) => `--${boundary}\n${part}`),
    `--${boundary}--`,
    "",
  ];
  return Buffer.from(lines.join("\n").replaceAll("\n", "\r\n"));
}
