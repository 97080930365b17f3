import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { FlaskConical, Globe, Mail } from "lucide-react";
import { inboxList } from "../../api/lists.ts";
import { type MessageFilters, messageList } from "../../api/messages.ts";
import type { Activity as Message } from "../../api/shapes.ts";
import { BUTTON } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { STATUS_WORDS, StatusBadge } from "./status.tsx";

const SOURCES = {
  email: { word: "Mail", icon: Mail },
  api: { word: "Call", icon: Globe },
  test: { word: "Test", icon: FlaskConical },
};

/** Every message of the account, newest first. */
export function Activity() {
  const filters: MessageFilters = useSearch({ strict: false });
  const list = useInfiniteQuery(messageList(filters));
  const { data: messages, error, isPending, refetch, hasNextPage } = list;
  return (
    <Page title="Activity" intro="Every mail and call, and what became of it.">
      <Filters filters={filters} />
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the activity" />}
      {messages?.length === 0 && !hasNextPage && <Nothing filtered={Object.keys(filters).length > 0} />}
      {messages && messages.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {messages.map((message) => (
            <Row key={message.message_id} message={message} />
          ))}
        </ul>
      )}
      <More of={list} />
    </Page>
  );
}

function Row({ message }: { message: Message }) {
  const { icon: Icon, word } = SOURCES[message.source];
  return (
    <li className="[contain-intrinsic-size:auto_4.5rem] [content-visibility:auto]">
      <Link
        to="/messages/$message_id"
        params={{ message_id: message.message_id }}
        className="grid gap-x-4 gap-y-0.5 px-4 py-3 hover:bg-hover sm:grid-cols-[minmax(0,1fr)_auto]"
      >
        <span className="flex min-w-0 items-center gap-2">
          <Icon aria-label={word} className="size-4 shrink-0 text-soft" />
          <span className="truncate font-medium">{titleOf(message)}</span>
        </span>
        <span className="flex items-center gap-3 text-sm text-soft sm:justify-end">
          <StatusBadge status={message.status} />
          <Time at={message.created} />
        </span>
        <span className="truncate text-sm text-soft sm:col-span-2">{lineOf(message)}</span>
      </Link>
    </li>
  );
}

function titleOf({ subject, command, source }: Message): string {
  return subject || command?.raw || (source === "email" ? "(no subject)" : "(no instruction)");
}

function lineOf({ sender, error, result }: Message): string {
  return [sender, error ?? result.replaceAll(/\s+/g, " ").slice(0, 200)].filter(Boolean).join(" · ");
}

function Filters({ filters }: { filters: MessageFilters }) {
  const navigate = useNavigate();
  const { data: inboxes = [] } = useQuery(inboxList);
  const choose = (name: keyof MessageFilters, value: string): void => {
    const { [name]: _old, ...rest } = filters;
    void navigate({ to: "/", search: { ...rest, ...(value ? { [name]: value } : {}) }, replace: true });
  };
  return (
    <div className="flex flex-wrap gap-2" role="group" aria-label="Filters">
      <Select
        aria-label="Status"
        className="w-auto!"
        value={filters.status ?? ""}
        onChange={(event) => choose("status", event.target.value)}
      >
        <option value="">Every status</option>
        {STATUS_WORDS.map(({ status, word }) => (
          <option key={status} value={status}>
            {word}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Source"
        className="w-auto!"
        value={filters.source ?? ""}
        onChange={(event) => choose("source", event.target.value)}
      >
        <option value="">Mails, calls and tests</option>
        {Object.entries(SOURCES).map(([source, { word }]) => (
          <option key={source} value={source}>
            {word}s
          </option>
        ))}
      </Select>
      {inboxes.length > 1 && (
        <Select
          aria-label="Inbox"
          className="w-auto! max-w-56"
          value={filters.inbox_id ?? ""}
          onChange={(event) => choose("inbox_id", event.target.value)}
        >
          <option value="">Every inbox</option>
          {inboxes.map(({ id, label, address }) => (
            <option key={id} value={id}>
              {label || address}
            </option>
          ))}
        </Select>
      )}
    </div>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="Nothing fits these filters">
        Choose fewer of them, or wait: new messages appear by themselves.
      </Empty>
    );
  return (
    <Empty
      title="No message yet"
      action={
        <>
          <Link to="/inboxes" className={`${BUTTON} bg-accent text-accent-text`}>
            Get an address
          </Link>
          <Link to="/playground" className={`${BUTTON} border border-line bg-card`}>
            Try it here
          </Link>
        </>
      }
    >
      Write a mail to one of your inboxes, or try an instruction in the playground. What became of it shows
      here.
    </Empty>
  );
}
