import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate, useParams } from "@tanstack/react-router";
import { Download, QrCode, RefreshCw } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { connectionList, inboxList, scheduleList } from "../../api/lists.ts";
import { serverFacts } from "../../api/session.ts";
import type { Inbox as InboxRow } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { QrPicture } from "../../ui/qr.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { useToast } from "../../ui/toast.tsx";
import { NotFound } from "../../shell/not-found.tsx";
import { PageFault } from "../../shell/page-fault.tsx";
import { InboxTabLink } from "../activity/setting-links.tsx";
import { StateOf } from "./inboxes.tsx";
import { InboxSenders } from "./inbox-senders.tsx";
import { InboxRules } from "./rules.tsx";
import { InboxSettings } from "./inbox-settings.tsx";
import { InboxTools } from "./inbox-tools.tsx";
import { InboxTry, keptWords } from "./inbox-try.tsx";
import { brokenModel } from "./models.ts";
import { useInboxChange } from "./use-inbox-change.ts";

const TABS = [
  { id: "try", title: "Try it" },
  { id: "settings", title: "Settings" },
  { id: "senders", title: "Who may write" },
  { id: "rules", title: "Rules" },
  { id: "tools", title: "Tools" },
] as const;
type Tab = (typeof TABS)[number]["id"];

export function Inbox() {
  const { inbox_id } = useParams({ strict: false });
  const { data: inboxes, error, refetch } = useQuery(inboxList);
  const inbox = inboxes?.find(({ id }) => id === inbox_id);
  if (error) return <PageFault error={error} reset={() => void refetch()} />;
  if (!inboxes) return <Loading what="the inbox" />;
  return inbox ? <InboxPage inbox={inbox} /> : <NotFound />;
}

function InboxPage({ inbox }: { inbox: InboxRow }) {
  const hash = useLocation({ select: (place) => place.hash });
  const navigate = useNavigate();
  const tab = TABS.find(({ id }) => id === hash)?.id ?? "try";
  const setTab = (id: Tab): void =>
    void navigate({ to: "/inboxes/$inbox_id", params: { inbox_id: inbox.id }, hash: id, replace: true });
  return (
    <Page title={inbox.label || inbox.local_part} actions={<Actions inbox={inbox} />}>
      <Card>
        <div className="flex flex-wrap items-center gap-3">
          <Copyable text={inbox.address} label="Copy the address" />
          {inbox.is_default && <Badge>Default</Badge>}
          <StateOf inbox={inbox} />
          <Shares inbox={inbox} />
        </div>
      </Card>
      {!inbox.enabled && (
        <Notice look="warn">
          Your account may have fewer inboxes: this one keeps its address, but its mail is not worked on.
          Delete another inbox, or ask for more room.
        </Notice>
      )}
      {inbox.problem !== null && (
        <Notice look="bad">
          {inbox.problem} {!inbox.routed && <ModelLink inbox={inbox} />}
        </Notice>
      )}
      <BrokenModel inbox={inbox} />
      {inbox.paused !== null && <Paused inbox={inbox} />}
      <Tabs<Tab> label="About this inbox" tabs={[...TABS]} chosen={tab} onChoose={setTab}>
        {tab === "try" && <InboxTry inbox={inbox} />}
        {tab === "settings" && <InboxSettings inbox={inbox} />}
        {tab === "senders" && <InboxSenders inbox={inbox} />}
        {tab === "rules" && <InboxRules inbox={inbox} />}
        {tab === "tools" && <InboxTools inbox={inbox} />}
      </Tabs>
    </Page>
  );
}

/** The link to where an inbox without a model gets one. */
function ModelLink({ inbox }: { inbox: InboxRow }) {
  const { data: connections } = useQuery(connectionList);
  return connections?.some(({ category }) => category === "llm") ? (
    <InboxTabLink inbox_id={inbox.id} tab="settings" words="Choose a model" />
  ) : (
    <Link to="/connections" className="underline">
      Connect a model
    </Link>
  );
}

/** Says that the model of an inbox does not work; its connection knows why. */
function BrokenModel({ inbox }: { inbox: InboxRow }) {
  const { data: connections } = useQuery(connectionList);
  const model = brokenModel(inbox, connections);
  if (!model) return null;
  return (
    <Notice look="bad">
      The model of this inbox does not work, so what comes to it fails.{" "}
      <Link to="/connections/$connection_id" params={{ connection_id: model.id }} className="underline">
        See why at “{model.label}”
      </Link>
    </Notice>
  );
}

function Paused({ inbox }: { inbox: InboxRow }) {
  const change = useInboxChange(inbox);
  return (
    <Notice look="warn">
      <p>
        It is paused:{" "}
        {inbox.paused === "keep"
          ? "new mail is taken and waits here until it goes on."
          : "whoever writes is asked to try again later."}
      </p>
      <Button className="mt-2" busy={change.isPending} onClick={() => change.mutate({ paused: null })}>
        Go on
      </Button>
      <Fault error={change.error} />
    </Notice>
  );
}

/** Buttons that take the address along: into the contacts of a phone, or to another screen. */
function Shares({ inbox }: { inbox: InboxRow }) {
  const [shown, setShown] = useState(false);
  const say = useToast();
  const { data: server } = useQuery(serverFacts);
  const mail = useChange<void, { to: string }>({
    run: () => post<{ to: string }>(`/inboxes/${inbox.id}/email-vcard`),
    touches: [],
    done: ({ to }) =>
      say(server?.outbound_mode === "capture" ? keptWords(to) : `The contact card is on its way to ${to}.`),
  });
  return (
    <span className="flex flex-wrap gap-1">
      <Button look="quiet" icon={<QrCode />} onClick={() => setShown(true)}>
        QR code
      </Button>
      <a href={`/inboxes/${inbox.id}/vcard`} download className={`${BUTTON} text-soft hover:bg-hover`}>
        <Download aria-hidden /> Contact card
      </a>
      <Button look="quiet" busy={mail.isPending} onClick={() => mail.mutate()}>
        Mail me the card
      </Button>
      <Fault error={mail.error} />
      {shown && (
        <Dialog title="Scan to write to this inbox" onClose={() => setShown(false)}>
          <QrPicture text={`mailto:${inbox.address}`} label={`QR code of ${inbox.address}`} />
        </Dialog>
      )}
    </span>
  );
}

/** What an inbox takes with it that somebody may count on. */
function GoneWithIt({ inbox }: { inbox: InboxRow }) {
  const { data = [] } = useQuery(scheduleList);
  const titles = data.filter(({ inbox_id }) => inbox_id === inbox.id).map(({ title }) => `“${title}”`);
  if (titles.length === 0) return null;
  return (
    <p>
      {titles.length === 1 ? "This schedule goes" : "These schedules go"} with it: {titles.join(", ")}.
    </p>
  );
}

function Actions({ inbox }: { inbox: InboxRow }) {
  const [asked, setAsked] = useState(false);
  const navigate = useNavigate();
  const say = useToast();
  const close = (): void => setAsked(false);
  const rotate = useChange<void, InboxRow>({
    run: () => post<InboxRow>(`/inboxes/${inbox.id}/rotate`),
    touches: [inboxList.queryKey],
    done: ({ address }) => {
      close();
      say(`The new address is ${address}.`);
    },
  });
  return (
    <>
      <Button icon={<RefreshCw />} onClick={() => setAsked(true)}>
        New address
      </Button>
      <DeleteButton
        title="Delete this inbox?"
        act="Delete the inbox"
        path={`/inboxes/${inbox.id}`}
        touches={[inboxList.queryKey, scheduleList.queryKey]}
        done={() => {
          say("The inbox is deleted.");
          void navigate({ to: "/inboxes", ignoreBlocker: true });
        }}
      >
        <p>
          Mail to {inbox.address} will be refused from then on, and no one gets that address again: not even
          you{inbox.local_part === inbox.prefix && ", although you have chosen it"}. Nothing brings the inbox
          back.
        </p>
        <GoneWithIt inbox={inbox} />
        <p>Its messages stay readable in the activity.</p>
      </DeleteButton>
      {asked && (
        <Confirm
          title="Give it a new address?"
          act="Give it a new address"
          busy={rotate.isPending}
          error={rotate.error}
          onConfirm={() => rotate.mutate()}
          onClose={close}
        >
          <p>Mail to {inbox.address} will be refused from then on, and no one gets that address again.</p>
          {inbox.local_part === inbox.prefix && <p>The new one has a random part behind its name.</p>}
          <p>Everything else about the inbox stays as it is.</p>
        </Confirm>
      )}
    </>
  );
}
