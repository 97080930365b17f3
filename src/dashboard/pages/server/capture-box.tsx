import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { useState } from "react";
import { get } from "../../api/client.ts";
import { paged } from "../../api/lists.ts";
import { serverFacts } from "../../api/session.ts";
import type { OutgoingMail, OutgoingMailDetail } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Select } from "../../ui/field.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { Typed } from "../../ui/typed.tsx";
import { MAIL_WORDS } from "./words.ts";

const LOOKS: Record<string, BadgeLook> = {
  sent: "good",
  queued: "accent",
  deferred: "warn",
  bounced: "bad",
  suppressed: "warn",
};

const WHAT = { reply: "An answer", notice: "A notice", forward: "A forwarded mail" };

/** The mail that has left the server or, in capture mode, stays in it. */
export function CaptureBox() {
  const [chosen, setChosen] = useState<string>();
  const [q, setQ] = useState("");
  const [status, setStatus] = useState("");
  const list = useInfiniteQuery({
    ...paged<OutgoingMail>(["admin", "mail", q, status], "/admin/mail", { q, status }),
    placeholderData: keepPreviousData,
  });
  const { data: mails, error, isPending, refetch } = list;
  const { data: server } = useQuery(serverFacts);
  const is_narrowed = q !== "" || status !== "";
  return (
    <div className="grid gap-3">
      <search aria-label="Outgoing mail" className="flex flex-wrap gap-2">
        <div className="relative min-w-0 flex-1 basis-56">
          <Search aria-hidden className="pointer-events-none absolute top-2.5 left-3 size-4 text-soft" />
          <Typed
            type="search"
            aria-label="Search recipients, accounts and subjects"
            placeholder="Search"
            maxLength={200}
            className="pl-9"
            value={q}
            onTyped={setQ}
          />
        </div>
        <Select
          aria-label="State"
          className="w-auto!"
          value={status}
          onChange={(event) => setStatus(event.target.value)}
        >
          <option value="">Every state</option>
          {Object.entries(MAIL_WORDS).map(([id, word]) => (
            <option key={id} value={id}>
              {id === "sent" && server?.outbound_mode === "capture" ? "Kept here" : word}
            </option>
          ))}
        </Select>
      </search>
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the mails" />}
      {mails?.length === 0 && !is_narrowed && (
        <Empty title="No mail yet">Answers, login codes and notices of this server are listed here.</Empty>
      )}
      {mails?.length === 0 && is_narrowed && !list.hasNextPage && (
        <Empty title="No mail fits">Search for less of it, or in every state.</Empty>
      )}
      {mails && mails.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {mails.map((mail) => (
            <li key={mail.id}>
              <button
                type="button"
                onClick={() => setChosen(mail.id)}
                className="flex w-full flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-left hover:bg-hover"
              >
                <Badge look={(!mail.kept_here && LOOKS[mail.status]) || "plain"}>{wordOf(mail)}</Badge>
                <span className="min-w-0 flex-1 basis-52">
                  <span className="block truncate">{mail.subject ?? WHAT[mail.kind]}</span>
                  <span className="block truncate text-sm text-soft">
                    To {mail.to}
                    {mail.account !== mail.to && `, for ${mail.account}`}
                  </span>
                </span>
                <span className="text-sm text-soft">
                  <Time at={mail.created} />
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <More of={list} />
      {chosen && <Detail id={chosen} onClose={() => setChosen(undefined)} />}
    </div>
  );
}

function wordOf({ kept_here, held, status, completed }: OutgoingMail): string {
  if (status === "deferred" && completed !== null) return "With the other server";
  if (held) return "Held";
  return kept_here ? "Kept here" : (MAIL_WORDS[status] ?? status);
}

function Detail({ id, onClose }: { id: string; onClose: () => void }) {
  const { data: mail, error } = useQuery({
    queryKey: ["admin", "mail", id],
    queryFn: ({ signal }) => get<OutgoingMailDetail>(`/admin/mail/${id}`, signal),
  });
  return (
    <Dialog title={mail?.subject ?? "Mail"} onClose={onClose}>
      <div className="grid gap-3">
        {mail && (
          <p className="flex flex-wrap gap-x-3 text-sm text-soft">
            <span className="wrap-anywhere">
              To {mail.to}
              {mail.account !== mail.to && `, for ${mail.account}`}
            </span>
            <Time at={mail.created} />
            {mail.attempts > 1 && <span>tried {mail.attempts} times</span>}
          </p>
        )}
        <Fault error={error} />
        {mail?.kept_here ? (
          <p className="text-sm text-soft">It went nowhere: this server keeps outgoing mail here.</p>
        ) : (
          mail?.response && <p className="text-sm text-soft wrap-anywhere">{mail.response}</p>
        )}
        {mail?.raw && <Words mail={mail} raw={mail.raw} />}
        {mail && !mail.raw && (
          <p className="text-soft">Its words are not shown: they belong to the account that it is from.</p>
        )}
      </div>
    </Dialog>
  );
}

/** A line of a mail that is as long as this was broken for its width, unless the next begins something of its own. */
const BROKEN_FROM_CHARS = 50;
const BEGINS = /^(?:$|[\s>*|#+\d-])/;

/** A text without the line breaks of its mail, as the page has a width of its own. */
function unbroken(text: string): string {
  const lines = text.split("\n");
  const ends = lines.map((line, at) => {
    const goes_on = line.length >= BROKEN_FROM_CHARS && !BEGINS.test(lines[at + 1] ?? "");
    return goes_on ? `${line} ` : `${line}\n`;
  });
  return ends.join("").trimEnd();
}

/** The text of a mail, and below it the source, for whoever looks into signatures and the like. */
function Words({ mail: { text }, raw }: { mail: OutgoingMailDetail; raw: string }) {
  return (
    <>
      {text && <LongText label="Its words" text={unbroken(text.trim())} className="max-h-96 p-3 text-sm" />}
      <details className="rounded-md border border-line">
        <summary className="px-3 py-2 text-sm">The whole mail, as it is sent</summary>
        <pre className="border-t border-line bg-back p-3 font-mono text-xs whitespace-pre-wrap wrap-anywhere">
          {raw}
        </pre>
      </details>
    </>
  );
}
