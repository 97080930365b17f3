import { ShieldAlert, ShieldCheck, ShieldQuestion } from "lucide-react";
import type { Story } from "../../api/shapes.ts";
import { Card } from "../../ui/page.tsx";
import { AllowSender } from "./allow-sender.tsx";
import { senderWords } from "./story-words.ts";

const LOOKS: Record<string, { icon: typeof ShieldCheck; look: string }> = {
  owner: { icon: ShieldCheck, look: "text-good" },
  listed: { icon: ShieldCheck, look: "text-good" },
  stranger: { icon: ShieldQuestion, look: "text-warn" },
  unauthenticated: { icon: ShieldAlert, look: "text-bad" },
};
const CHECKS: [string, string][] = [
  ["spf", "SPF, the server it came from"],
  ["dkim", "DKIM, the signature"],
  ["dmarc", "DMARC, the domain’s own rule"],
];
const VERDICTS: Record<string, string> = {
  pass: "passed",
  fail: "failed",
  softfail: "failed, though not strictly",
  none: "not there",
  neutral: "says nothing",
  temperror: "could not be looked up",
  permerror: "is written wrongly",
};

/** Who wrote it, how that was proven, and so what it may do. */
export function Sender({ story }: { story: Story }) {
  const isJudged = story.auth !== null || story.status !== "rejected";
  const state = isJudged ? LOOKS[story.authority] : undefined;
  const Icon = state?.icon ?? ShieldQuestion;
  return (
    <Card title="Who wrote it">
      <div className="grid gap-3">
        <p className="flex items-start gap-2">
          <Icon aria-hidden className={`mt-0.5 size-5 shrink-0 ${state?.look ?? ""}`} />
          <span>
            <span className="font-medium wrap-anywhere">
              {story.sender ?? (story.source === "test" ? "A test of yours" : "A call in your name")}
            </span>
            <span className="block text-sm text-soft">{senderWords(story)}</span>
          </span>
        </p>
        <Recipients words="To" addresses={story.to} />
        <Recipients words="Cc" addresses={story.cc} />
        {story.auth?.["trusted_network"] === true && (
          <p className="text-sm text-soft">
            It came from this machine or a network that the operator trusts, so no more proof was asked for.
          </p>
        )}
        {story.auth && story.auth["trusted_network"] !== true && (
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
            {CHECKS.map(([name, words]) => (
              <Check key={name} words={words} verdict={story.auth?.[name]} />
            ))}
            <Via via={story.auth["via"]} />
          </dl>
        )}
        <div className="empty:hidden">
          <AllowSender story={story} />
        </div>
      </div>
    </Card>
  );
}

function Recipients({ words, addresses }: { words: string; addresses: string[] }) {
  if (addresses.length === 0) return null;
  return (
    <p className="text-sm wrap-anywhere">
      <span className="text-soft">{words}</span> {addresses.join(", ")}
    </p>
  );
}

function Check({ words, verdict }: { words: string; verdict: unknown }) {
  if (typeof verdict !== "string") return null;
  return (
    <>
      <dt className="text-soft">{words}</dt>
      <dd className={verdict === "pass" ? "text-good" : "text-text"}>{VERDICTS[verdict] ?? verdict}</dd>
    </>
  );
}

/** Who checked the sender, if it was not this server itself. */
function Via({ via }: { via: unknown }) {
  if (typeof via !== "string") return null;
  const [kind, name] = via.split(":");
  return (
    <>
      <dt className="text-soft">{kind === "relay" ? "Checked by your mail server" : "Vouched for by"}</dt>
      <dd className="wrap-anywhere">{name}</dd>
    </>
  );
}
