import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get } from "../../api/client.ts";
import { paged } from "../../api/lists.ts";
import type { OutgoingMail, OutgoingMailDetail } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { MAIL_WORDS } from "./words.ts";

const LOOKS: Record<string, BadgeLook> = {
  sent: "good",
  queued: "accent",
  deferred: "warn",
  bounced: "bad",
  suppressed: "warn",
};

/** What has left the server or, where outgoing mail is captured, stays in it. */
export function CaptureBox() {
  const [chosen, setChosen] = useState<string>();
  const list = useInfiniteQuery(paged<OutgoingMail>(["admin", "mail"], "/admin/mail"));
  const { data: mails, error, isPending, refetch } = list;
  return (
    <div className="grid gap-3">
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the mails" />}
      {mails?.length === 0 && (
        <Empty title="No mail yet">Answers, login codes and notices of this server are listed here.</Empty>
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
                <span className="min-w-0 flex-1 basis-52 truncate">
                  {mail.kind === "reply" ? "Answer" : "Notice"} to {mail.to}
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
    <Dialog title={mail ? `To ${mail.to}` : "Mail"} onClose={onClose}>
      <div className="grid gap-3">
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

/** Its words first, then all of it, for who looks into signatures and the like. */
function Words({ mail: { subject, text }, raw }: { mail: OutgoingMailDetail; raw: string }) {
  return (
    <>
      {subject && <p className="font-medium">{subject}</p>}
      {text && <LongText label="Its words" text={text} className="max-h-96 p-3 text-sm" />}
      <details className="rounded-md border border-line">
        <summary className="px-3 py-2 text-sm">The whole mail, as it would be sent</summary>
        <pre className="border-t border-line bg-back p-3 font-mono text-xs whitespace-pre-wrap wrap-anywhere">
          {raw}
        </pre>
      </details>
    </>
  );
}
