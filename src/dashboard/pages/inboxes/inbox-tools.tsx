import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { connectionList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import {
  actsUnasked,
  allow,
  forbid,
  isIdle,
  letActUnasked,
  letActWhenNamed,
  MEMORY,
  mayUse,
  type Tool,
  toolsOf,
} from "./scope.ts";
import { shortTarget } from "../connections/short-target.ts";
import { useInboxChange } from "./use-inbox-change.ts";

/** Which tools an inbox may use, and which of them may act without being named. */
export function InboxTools({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const { data: connections, error, refetch } = useQuery(connectionList);
  const [asked, setAsked] = useState<Tool>();
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!connections) return <Loading what="your tools" />;
  const connected = toolsOf(connections);
  const tools = [...connected, MEMORY];
  const usable = connected.filter((tool) => mayUse(inbox, tool));
  const [first] = usable;
  const may_steer = usable.length > 1 && usable.some(({ server_id }) => server_id !== null);
  return (
    <Card title="What this inbox may use">
      <div className="grid gap-4">
        {connected.length === 0 && <NoTools />}
        <Idle tools={tools} inbox={inbox} onAllow={(tool) => change.mutate(allow(inbox, tool, tools))} />
        <ul className="grid gap-3">
          {tools.map((tool) => (
            <ToolRow
              key={tool.target}
              tool={tool}
              inbox={inbox}
              onAllow={(on) => change.mutate((on ? allow : forbid)(inbox, tool, tools))}
              onUnasked={(on) => (on ? setAsked(tool) : change.mutate(letActWhenNamed(inbox, tool)))}
            />
          ))}
        </ul>
        <WhatIsLeft inbox={inbox} busy={change.isPending} onAll={() => change.mutate({ scope: null })} />
        <Notice>
          What you ask for in a new mail of your own is done.{" "}
          {may_steer &&
            first &&
            `As more than one is ticked here, a tool server could steer what is done with another tool: to have something changed, begin with the name of the tool, such as “@${shortTarget(first.target)} do this”. `}
          As soon as a mail contains what others wrote (it answers, quotes or passes on another one, or has a
          file), a tool only looks things up, and changes something only if your own instruction begins with
          its name, such as “@notes file this”. Sentences inside of mails and files never count as yours.
        </Notice>
        <Fault error={change.error} />
      </div>
      {asked && (
        <Confirm
          title={`Let ${asked.label} act by itself?`}
          act="Let it act by itself"
          busy={change.isPending}
          error={change.error}
          onConfirm={() =>
            change.mutate(letActUnasked(inbox, asked, tools), { onSuccess: () => setAsked(undefined) })
          }
          onClose={() => setAsked(undefined)}
        >
          <p>
            It may then write and change things although nobody named it, and after reading what others wrote.
          </p>
          <p>Do this only if a mistake there does no harm.</p>
        </Confirm>
      )}
    </Card>
  );
}

/** Tool servers in the inbox's list that its scope does not allow. */
function Idle({ tools, inbox, onAllow }: { tools: Tool[]; inbox: Inbox; onAllow: (tool: Tool) => void }) {
  const idle = tools.filter((tool) => isIdle(inbox, tool));
  if (idle.length === 0) return null;
  return (
    <Notice look="warn">
      <p>
        {idle.map(({ label }) => label).join(", ")}: this inbox has it in its list of tool servers, but may
        use
        {inbox.scope?.targets?.length === 0 ? " no tools at all" : " only what is ticked below"}, so nothing
        of it is ever called.
      </p>
      <span className="mt-2 flex flex-wrap gap-2">
        {idle.map((tool) => (
          <Button key={tool.target} onClick={() => onAllow(tool)}>
            Allow {tool.label}
          </Button>
        ))}
      </span>
    </Notice>
  );
}

interface ToolRowProps {
  tool: Tool;
  inbox: Inbox;
  onAllow: (on: boolean) => void;
  onUnasked: (on: boolean) => void;
}

function ToolRow({ tool, inbox, onAllow, onUnasked }: ToolRowProps) {
  const usable = mayUse(inbox, tool);
  const unasked = actsUnasked(inbox, tool);
  return (
    <li className="grid gap-1">
      <Checkbox
        label={
          <>
            <span className="font-medium">{tool.label}</span>{" "}
            <code className="font-mono text-sm text-soft">@{shortTarget(tool.target)}</code>
          </>
        }
        checked={usable}
        onChange={(event) => onAllow(event.target.checked)}
      />
      {tool === MEMORY && (
        <p className="pl-6 text-sm text-soft">
          Looks through earlier mails and calls, where an instruction begins with its name. Senders on the
          list find their own alone.
        </p>
      )}
      {usable && tool !== MEMORY && (
        <div className="pl-6 text-sm">
          <Checkbox
            label={
              <>
                May change things without being named<span className="sr-only">: {tool.label}</span>
              </>
            }
            checked={unasked}
            onChange={(event) => onUnasked(event.target.checked)}
          />
          {unasked && <p className="text-warn">It acts by itself, also on what others wrote.</p>}
        </div>
      )}
    </li>
  );
}

function WhatIsLeft({ inbox: { scope }, busy, onAll }: { inbox: Inbox; busy: boolean; onAll: () => void }) {
  if (scope === null || scope.targets === null)
    return (
      <p className="text-sm text-soft">
        A service that you connect later may be used here too. A tool server may not before you tick it.
      </p>
    );
  return (
    <div className="flex flex-wrap items-center justify-between gap-2">
      <p className="text-sm text-soft">
        {scope.targets.length === 0
          ? "Nothing is allowed: the model answers by itself, and makes no files."
          : "Only what is ticked is allowed. What you connect later is not."}
      </p>
      <Button busy={busy} onClick={onAll}>
        Allow all services again
      </Button>
    </div>
  );
}

function NoTools() {
  return (
    <Empty
      title="No tool is connected yet"
      action={
        <Link to="/connections" className="text-accent underline">
          Connect one
        </Link>
      }
    >
      The model answers by itself. With a tool it can look things up and file them, for example in your notes.
    </Empty>
  );
}
