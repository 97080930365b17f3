import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { quote } from "../../lib/quote.ts";
import { fail, ok, type Outcome, warn } from "./check.ts";
import { DAY_MS } from "../../lib/durations.ts";

const NOTICE_DAYS = 14;

/**
 * Judges whether clients can trust the certificate that a server presents for `name`. `self_signed` is the verdict on a
 * self-signed one.
 */
export function judgeCertificate(
  socket: TLSSocket,
  { name, now_ms, self_signed }: { name: string; now_ms: number; self_signed: "warn" | "fail" },
): Outcome {
  const { raw } = socket.getPeerCertificate();
  const leaf = new X509Certificate(raw);
  const days = Math.floor((Date.parse(leaf.validTo) - now_ms) / DAY_MS);
  const mend = `Get one for ${name} from a public authority: name its files in server.cert and server.key, or let the server get it by itself (server.tls = "acme").`;
  const judge = self_signed === "fail" ? fail : warn;
  if (leaf.issuer === leaf.subject)
    return judge("The certificate is self-signed: others can encrypt, but not tell who answers.", mend);
  if (leaf.checkHost(name) === undefined)
    return fail(`The certificate is not for ${name}, but for ${leaf.subjectAltName ?? leaf.subject}.`, mend);
  if (days < 0) return fail(`The certificate ended ${-days} days ago.`, mend);
  if (!socket.authorized)
    return fail(
      `The certificate, given by ${issuerOf(leaf)}, is not trusted (${String(socket.authorizationError)}).`,
      mendOf(leaf),
    );
  const found = `The certificate is for ${name} and good for ${days} days.`;
  return days < NOTICE_DAYS ? warn(found, "Renew it soon.") : ok(found);
}

function issuerOf({ issuer }: X509Certificate): string {
  const names = /^(?:O|CN)=.*$/gm.exec(issuer);
  return quote((names?.[0] ?? issuer).replace(/^\w+=/, ""), []);
}

function mendOf({ issuer }: X509Certificate): string {
  if (/staging/i.test(issuer))
    return "It is one for tests: take the address of the testing service out of acme.directory, and have a real one made by `systemctl reload mailwright` or a restart.";
  return 'Show the whole chain: server.cert (or the proxy in front) needs the certificates of its authority behind its own, which is fullchain.pem and not cert.pem. If the authority is your own, name its root in acme.ca_file for these checks; others will trust only a public one, such as server.tls = "acme" gets.';
}
