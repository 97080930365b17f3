import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { paged } from "../../api/lists.ts";
import type { Job } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Select } from "../../ui/field.tsx";
import { More } from "../../ui/more.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { Holds } from "./holds.tsx";

const KEY = ["admin", "queue"];
const REFRESH_MS = 5_000;
const STATES: Record<string, { look: BadgeLook; word: string }> = {
  due: { look: "accent", word: "Next" },
  waiting: { look: "plain", word: "Waits" },
  held: { look: "warn", word: "Held" },
  running: { look: "good", word: "Running" },
  dead: { look: "bad", word: "Given up" },
};

/** What else comes of it when work of a kind is dropped. */
const ENDS: Record<string, string> = {
  route_message: "The message ends as failed, and its credit is given back.",
  send_mail: "An answer that was to be sent stays unsent, and its message says so.",
  deliver_webhooks: "What waits for this endpoint has failed, and can be sent again on its page.",
};

export function Queue() {
  const [state, setState] = useState("");
  const list = useInfiniteQuery({
    ...paged<Job>([...KEY, state], "/admin/queue", { state }),
    refetchInterval: REFRESH_MS,
  });
  const { data: jobs, error, isPending, refetch } = list;
  return (
    <div className="grid gap-3">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Select
          aria-label="State"
          className="w-auto!"
          value={state}
          onChange={(event) => setState(event.target.value)}
        >
          <option value="">All work</option>
          {Object.entries(STATES).map(([id, { word }]) => (
            <option key={id} value={id}>
              {word}
            </option>
          ))}
        </Select>
        <Holds />
      </div>
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the queue" />}
      {jobs?.length === 0 && <Empty title="Nothing waits">All work is done.</Empty>}
      {jobs && jobs.length > 0 && (
        <ul className="divide-y divide-line rounded-xl border border-line bg-card">
          {jobs.map((job) => (
            <Row key={job.id} job={job} />
          ))}
        </ul>
      )}
      <More of={list} />
    </div>
  );
}

function Row({ job }: { job: Job }) {
  const retry = useChange({ run: () => post(`/admin/queue/${job.id}/retry`), touches: [KEY] });
  const drop = useChange({ run: () => post(`/admin/queue/${job.id}/drop`, {}), touches: [KEY] });
  const [dropped, setDropped] = useState(false);
  const state = STATES[job.state];
  return (
    <li className="grid gap-2 px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Badge look={state?.look ?? "plain"}>{state?.word ?? job.state}</Badge>
        <span className="grid min-w-0 flex-1 basis-60 wrap-anywhere">
          <span className="first-letter:uppercase">{job.about}</span>
          {job.account !== null && <span className="text-sm text-soft">Account {job.account}</span>}
        </span>
        <span className="text-sm text-soft">
          <Time at={job.created} />
        </span>
        {job.state !== "running" && (
          <span className="flex gap-1">
            {job.state !== "held" && (
              <Button
                aria-label={`Try now: ${job.about}`}
                busy={retry.isPending}
                onClick={() => retry.mutate()}
              >
                Try now
              </Button>
            )}
            {job.may_drop && (
              <Button look="danger" aria-label={`Drop: ${job.about}`} onClick={() => setDropped(true)}>
                Drop
              </Button>
            )}
          </span>
        )}
      </div>
      <p className="text-sm text-soft wrap-anywhere first-letter:uppercase">
        {job.why}
        {job.state === "waiting" && job.next_at !== null && (
          <>
            ; next <Time at={job.next_at} />
          </>
        )}
      </p>
      <Fault error={retry.error} />
      {dropped && (
        <Confirm
          title="Drop this work?"
          act="Drop it"
          busy={drop.isPending}
          error={drop.error}
          onConfirm={() => drop.mutate()}
          onClose={() => setDropped(false)}
        >
          <p className="wrap-anywhere">Nobody will {job.about}.</p>
          {ENDS[job.kind] && <p>{ENDS[job.kind]}</p>}
        </Confirm>
      )}
    </li>
  );
}
