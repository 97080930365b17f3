/** A pattern that is refused as it stands, wherever it stands in a file, and the proof that it does no harm there. */
export interface Exception {
  file: string;
  /** What it begins with, so much that no other of the file begins so. */
  source: string;
  why: string;
}

export const EXCEPTIONS: Exception[] = [
  {
    file: "src/resources/conversations/snippet.ts",
    source: String.raw`(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w)`,
    why: "snippetOf cuts the reply to 800 characters before.",
  },
  {
    file: "src/trust/shown/harmless-text.ts",
    source: "^(?:[+-]\\d[\\d .'’]*(?:e[+-]?\\d+)?\\s*%?|[\\s-]+|\\+)\"?$",
    why: "harmlessCells cuts the cell to 60 characters before.",
  },
  {
    file: "src/trust/shown/redact.ts",
    source: String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,4000}?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
    why: "Its loop ends after 4,000 characters, and no more than 8,192 of a text are read.",
  },
  {
    file: "src/trust/own-words/marker-lines.ts",
    source: String.raw`(\p{Nd}{1,2}[:.h]\p{Nd}{2}|`,
    why: "Four lines of at most 400 characters are read.",
  },
  {
    file: "src/trust/own-words/subject-mark.ts",
    source: String.raw`[\s.([{^*-]*\d{0,4}$`,
    why: "hasReplyMark cuts the label to 60 characters before.",
  },
  {
    file: "node_modules/mailauth/lib/dkim/dkim-verifier.js",
    source: String.raw`^[ \t\r\n]+|[ \t\r\n]+$`,
    why: "mail/reading/signatures.ts leaves out signatures and fields of ARC of more than 4 KB; all of a header have 64 KB.",
  },
  {
    file: "node_modules/mailauth/lib/mta-sts.js",
    source: String.raw`[ \t]+$`,
    why: "Runs of blanks are cut before (net/dns-reply.ts, mail/sending/mta-sts.ts).",
  },
  {
    file: "node_modules/mailauth/lib/mta-sts.js",
    source: String.raw`^[ \t]+|[ \t]+$`,
    why: "Runs of blanks are cut before (net/dns-reply.ts, mail/sending/mta-sts.ts).",
  },
  {
    file: "node_modules/mailauth/lib/parse-dkim-headers.js",
    source: String.raw`^[ \t\r\n]+|[ \t\r\n]+$`,
    why: "mail/reading/signatures.ts leaves out signatures and fields of ARC of more than 4 KB; all of a header have 64 KB.",
  },
  {
    file: "node_modules/mailauth/lib/parse-received.js",
    source: String.raw`\[(?:IPv6:)?([^\]\s]+)\]`,
    why: "Nothing that is called here parses Received fields.",
  },
  {
    file: "node_modules/mailauth/lib/spf/index.js",
    source: String.raw`^([\x20-\x2D\x2f-\x7e]+\.)+`,
    why: "The name is that of a sender, or one of 253 characters at most that a record asks for.",
  },
  {
    file: "node_modules/mailauth/lib/spf/macro.js",
    source: String.raw`%%|%_|%-`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/spf/spf-verify.js",
    source: String.raw`\.+$`,
    why: "It is a name that the DNS returned, of 255 octets at most.",
  },
  {
    file: "node_modules/mailauth/lib/spf/spf-verify.js",
    source: String.raw`%\{[^}]*\}|%[%_-]`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/spf/spf-verify.js",
    source: String.raw`^([\x21-\x2D\x2f-\x7e]+\.)+`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/spf/syntax.js",
    source: String.raw`^(?:[a-z0-9]*[a-z]`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/spf/syntax.js",
    source: String.raw`%.*$`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/spf/syntax.js",
    source: String.raw`^([+\-?~]?)`,
    why: "net/dns-reply.ts leaves no record longer than 4,096 characters, nor with more than 16 macros.",
  },
  {
    file: "node_modules/mailauth/lib/tools.js",
    source: String.raw`[\r\n]+$`,
    why: "A header has no bare CR (mail/reading/header-block.ts) and ends at its first empty line.",
  },
  {
    file: "node_modules/mailauth/lib/tools.js",
    source: String.raw`^[ \t]+|[ \t]+$`,
    why: "A field's name has no blanks in it (mail/reading/header-block.ts), and those of a signature are 4 KB at most.",
  },
  {
    file: "node_modules/mailauth/lib/tools.js",
    source: String.raw`\.+$`,
    why: "mail/reading/signatures.ts leaves out signatures and fields of ARC of more than 4 KB; all of a header have 64 KB.",
  },
  {
    file: "node_modules/nodemailer/dist/esm/addressparser/index.js",
    source: String.raw`^("(?:[^"\\]|\\[\s\S])*"@`,
    why: "An address has 320 characters at most.",
  },
  {
    file: "node_modules/nodemailer/dist/esm/mime-funcs/index.js",
    source: String.raw`(\s+)[^\s]*$`,
    why: "It folds lines, 76 characters at a time.",
  },
  {
    file: "node_modules/nodemailer/dist/esm/nodemailer.js",
    source: String.raw`\/+$`,
    why: "It reads the environment of its own test accounts.",
  },
  {
    file: "node_modules/nodemailer/dist/esm/nodemailer.js",
    source: String.raw`\b([A-Z0-9]+)=`,
    why: "It reads an answer of the service of its own test accounts.",
  },
  {
    file: "node_modules/nodemailer/dist/esm/smtp-connection/index.js",
    source: String.raw`^334\s+(.+)$`,
    why: "It reads one line, which has no line end that would make it look again.",
  },
  {
    file: "node_modules/ipaddr.js/lib/ipaddr.js",
    source: String.raw`%.+$`,
    why: "It reads what is an address already (isIP), with its zone.",
  },
  {
    file: "node_modules/oauth4webapi/build/index.js",
    source: String.raw`^\s+(.*)$`,
    why: "It reads a field of an HTTP response, which has no line end that would make it look again.",
  },
];
