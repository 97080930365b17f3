import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { memo, useState } from "react";
import { snippetOf } from "../../../resources/conversations/snippet.ts";
import { inboxList } from "../../api/lists.ts";
import { messageList, readSoFar } from "../../api/messages.ts";
import type { Activity as Message } from "../../api/shapes.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";
import { Growing, Live } from "../../ui/growing.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { useToast } from "../../ui/toast.tsx";
import { useFirstSteps } from "../setup/first-steps.ts";
import { type Choice, choiceOf, filtersOf } from "./choice.ts";
import { Filters } from "./filters.tsx";
import { Marked, nearer } from "./marked.tsx";
import { leaveList } from "./place.tsx";
import { Selection } from "./selection.tsx";
import { ReplyBadge, StatusBadge, TriedAgainBadge } from "./status.tsx";
import { errorWords } from "./story-words.ts";
import { SOURCES } from "./words.ts";

/** Every message of the account, newest first. */
export function Activity() {
  const choice = choiceOf(useSearch({ strict: false }));
  const navigate = useNavigate();
  const say = useToast();
  const router = useRouter();
  const choose = (search: Choice): void => void navigate({ to: "/", search, replace: true });
  // Typing filters after a pause. A row may have been opened meanwhile, and the filter must not lead back from there.
  const narrow = (search: Choice): void => {
    if (router.state.location.pathname === "/") choose(search);
  };
  const clear = (): void => {
    choose({});
    say("All filters are gone.", () => choose(choice));
  };
  const is_narrowed = Object.keys(choice).length > 0;
  const list = messageList(filtersOf(choice));
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<ReadonlyMap<string, Message>>();
  const [last, setLast] = useState("");
  const toggle = (message: Message, is_range: boolean): void => {
    const rows = is_range
      ? upTo(readSoFar(queries, list), { from: last, to: message.message_id })
      : [message];
    const next = new Map(chosen);
    const is_on = !next.has(message.message_id);
    for (const row of rows)
      if (is_on) next.set(row.message_id, row);
      else next.delete(row.message_id);
    setChosen(next);
    setLast(message.message_id);
  };
  const rowOf = (message: Message) =>
    chosen ? (
      <Choosable message={message} checked={chosen.has(message.message_id)} onToggle={toggle} />
    ) : (
      <Row message={message} choice={choice} />
    );
  return (
    <Page
      title="Activity"
      intro="Every mail and call, and what became of it."
      actions={
        <>
          <Live />
          {!chosen && (
            <Button icon={<ListChecks />} onClick={() => setChosen(new Map())}>
              Select
            </Button>
          )}
        </>
      }
    >
      <Filters choice={choice} onChoose={narrow} onClear={is_narrowed ? clear : undefined} />
      {chosen && (
        <Selection
          chosen={[...chosen.values()]}
          list={list}
          onChoose={(messages) =>
            setChosen(new Map(messages.map((message) => [message.message_id, message])))
          }
          onLeave={() => setChosen(undefined)}
        />
      )}
      <Growing
        list={list}
        label="Messages"
        wordsFor={(count) => (count === 1 ? "1 new message" : `${count} new messages`)}
        empty={is_narrowed ? <NoneFits onClear={clear} searches={choice.q !== undefined} /> : <NoneYet />}
        keyOf={idOf}
        row={rowOf}
        className="[--row:6rem] sm:[--row:4.5rem]"
      />
    </Page>
  );
}

const idOf = ({ message_id }: Message): string => message_id;

/** The messages between two of a list, with both; where one is not on it, the last alone. */
function upTo(messages: Message[], { from, to }: { from: string; to: string }): Message[] {
  const ids = messages.map(idOf);
  const end = ids.indexOf(to);
  const begin = ids.includes(from) ? ids.indexOf(from) : end;
  return messages.slice(Math.min(begin, end), Math.max(begin, end) + 1);
}

const LINES =
  "grid h-full content-center gap-x-4 gap-y-0.5 px-4 -outline-offset-2 hover:bg-hover sm:grid-cols-[minmax(0,1fr)_auto]";

const Row = memo(
  function Row({ message, choice }: { message: Message; choice: Choice }) {
    return (
      <Link
        to="/messages/$message_id"
        params={{ message_id: message.message_id }}
        search={choice}
        onClick={leaveList}
        className={LINES}
      >
        <Lines message={message} />
      </Link>
    );
  },
  (one, other) =>
    one.message === other.message && JSON.stringify(one.choice) === JSON.stringify(other.choice),
);

interface ChoosableProps {
  message: Message;
  checked: boolean;
  /** `is_range`: all from the one before are meant. */
  onToggle: (message: Message, is_range: boolean) => void;
}

function Choosable({ message, checked, onToggle }: ChoosableProps) {
  return (
    <label className="flex h-full cursor-pointer items-center pl-4 select-none hover:bg-hover">
      <input
        type="checkbox"
        checked={checked}
        onChange={({ nativeEvent }) => onToggle(message, (nativeEvent as MouseEvent).shiftKey)}
        className="size-4 shrink-0 accent-accent"
      />
      <span className={classes(LINES, "min-w-0 flex-1")}>
        <Lines message={message} />
      </span>
    </label>
  );
}

function Lines({ message }: { message: Message }) {
  const { icon: Icon, word } = SOURCES[message.source];
  return (
    <>
      <span className="flex min-w-0 items-center gap-2">
        <Icon aria-label={word} className="size-4 shrink-0 text-soft" />
        <span className="truncate font-medium">
          <Title message={message} />
        </span>
      </span>
      <span className="flex min-w-0 items-center gap-3 text-sm whitespace-nowrap text-soft sm:justify-end">
        <InboxName inbox_id={message.inbox_id} />
        <span className="flex min-w-0 gap-1 overflow-hidden">
          <StatusBadge message={message} />
          <TriedAgainBadge tried_again={message.tried_again} />
          <ReplyBadge reply_status={message.reply_status} />
        </span>
        <Time at={message.created} />
      </span>
      <span className="truncate text-sm text-soft sm:col-span-2">
        {message.tags.length > 0 && (
          <span className="text-text">{message.tags.map((tag) => `#${tag}`).join(" ")} · </span>
        )}
        <Line message={message} />
      </span>
    </>
  );
}

/** The inbox that it is of, where there are several. */
function InboxName({ inbox_id }: Pick<Message, "inbox_id">) {
  const { data: inboxes = [] } = useQuery(inboxList);
  const inbox = inboxes.find(({ id }) => id === inbox_id);
  if (!inbox || inboxes.length === 1) return null;
  return <span className="max-w-48 min-w-0 truncate max-sm:order-last">{inbox.label || inbox.address}</span>;
}

/** The subject, with what a search has found in it. */
function Title({ message }: { message: Message }) {
  const found = message.highlights?.find(({ field }) => field === "subject");
  return found && message.mails === 1 ? <Marked {...nearer(found)} /> : titleOf(message);
}

/** What came of it or, in a search, where the words stand that it has found. */
function Line({ message }: { message: Message }) {
  const found = message.highlights?.find(({ field }) => field !== "subject");
  if (!found) return lineOf(message);
  return (
    <>
      {found.field !== "sender" && message.sender && `${message.sender} · `}
      <Marked {...nearer(found)} />
    </>
  );
}

function titleOf({ subject, command, source, mails }: Message): string {
  if (mails > 1) return `${mails} mails`;
  return subject || command?.raw || (source === "email" ? "(no subject)" : "(no instruction)");
}

function lineOf({ sender, error, reason, result }: Message): string {
  return [sender, errorWords({ error, reason }) ?? snippetOf(result)].filter(Boolean).join(" · ");
}

function NoneFits({ onClear, searches }: { onClear: () => void; searches: boolean }) {
  return (
    <Empty title="Nothing fits these filters" action={<Button onClick={onClear}>Clear the filters</Button>}>
      {searches
        ? "Words are found whole, or by their beginning. Try fewer of them."
        : "Choose fewer of them, or wait: new messages appear by themselves."}
    </Empty>
  );
}

function NoneYet() {
  const { steps, error } = useFirstSteps();
  if (!steps && !error) return <Loading what="what is there already" />;
  if (steps && Object.values(steps.done).includes(false))
    return (
      <Empty
        title="No message yet"
        action={
          <Link to="/welcome" className={`${BUTTON} bg-accent text-accent-text`}>
            Go on with the first steps
          </Link>
        }
      >
        A few steps lead to your first answer. What became of each mail shows here.
      </Empty>
    );
  return (
    <Empty
      title="No message yet"
      action={
        <>
          <Link to="/inboxes" className={`${BUTTON} bg-accent text-accent-text`}>
            See your addresses
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
