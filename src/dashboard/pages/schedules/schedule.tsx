import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, patch, post } from "../../api/client.ts";
import { inboxList, paged, scheduleList } from "../../api/lists.ts";
import type { Activity, RoutingResult, Schedule as ScheduleView } from "../../api/shapes.ts";
import { NotFound } from "../../shell/not-found.tsx";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { More } from "../../ui/more.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { StatusBadge } from "../activity/status.tsx";
import { changesOf, ScheduleFields, settingsOf } from "./schedule-fields.tsx";
import { ScheduleState } from "./schedules.tsx";
import { momentIn, whenWords } from "./words.ts";

/** A run is over in seconds, mostly. */
const REFRESH_MS = 5_000;

export function Schedule() {
  const { schedule_id } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({ ...scheduleList, refetchInterval: REFRESH_MS });
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the schedule" />;
  const schedule = data.find(({ id }) => id === schedule_id);
  return schedule ? <SchedulePage schedule={schedule} /> : <NotFound />;
}

const runsKey = (id: string) => ["schedule-runs", id];

function SchedulePage({ schedule }: { schedule: ScheduleView }) {
  const navigate = useNavigate();
  const say = useToast();
  const [changing, setChanging] = useState(false);
  const path = `/v1/schedules/${schedule.id}`;
  const touches = [scheduleList.queryKey, runsKey(schedule.id)];
  const run = useChange<void, RoutingResult>({
    run: () => post<RoutingResult>(`${path}/run`),
    touches,
    done: () => say("It runs now."),
  });
  const pause = useChange<boolean>({ run: (paused) => patch(path, { paused }), touches });
  const is_paused = schedule.status === "paused";
  return (
    <Page
      title={schedule.title}
      actions={
        <>
          <Button busy={run.isPending} onClick={() => run.mutate()}>
            Run now
          </Button>
          {(is_paused || schedule.status === "active") && (
            <Button
              look={is_paused ? "main" : "plain"}
              busy={pause.isPending}
              onClick={() => pause.mutate(!is_paused)}
            >
              {is_paused ? "Go on" : "Pause"}
            </Button>
          )}
          <Button onClick={() => setChanging(true)}>Change</Button>
          <DeleteButton
            title="Delete this schedule?"
            act="Delete the schedule"
            path={path}
            touches={[scheduleList.queryKey]}
            done={() => void navigate({ to: "/schedules" })}
          >
            <p>It does not run any more. What its runs have done stays in the activity.</p>
          </DeleteButton>
        </>
      }
    >
      <Fault error={run.error ?? pause.error} />
      <Summary schedule={schedule} />
      <Runs schedule={schedule} />
      {changing && (
        <Change
          schedule={schedule}
          onChanged={() => {
            setChanging(false);
            say("The schedule is changed.");
          }}
          onClose={() => setChanging(false)}
        />
      )}
    </Page>
  );
}

function Summary({ schedule }: { schedule: ScheduleView }) {
  const { data: inboxes } = useQuery(inboxList);
  const { reason, next_times, timezone, until, created_by } = schedule;
  const inbox = inboxes?.find(({ id }) => id === schedule.inbox_id);
  return (
    <Card>
      <div className="grid gap-4">
        <div className="flex flex-wrap items-center gap-3">
          <p className="font-medium">{whenWords(schedule)}</p>
          <ScheduleState schedule={schedule} />
        </div>
        {reason !== null && <Notice look={schedule.status === "paused" ? "bad" : "info"}>{reason}</Notice>}
        {schedule.status === "unclear" && (
          <Notice look="warn">It was not clear when it is to run. Choose “Change” and give it a time.</Notice>
        )}
        {next_times.length > 0 && (
          <div className="text-sm">
            <p>It runs next</p>
            <ul className="list-disc pl-5 text-soft">
              {next_times.map((at) => (
                <li key={at}>{momentIn(at, timezone)}</li>
              ))}
            </ul>
          </div>
        )}
        {until !== null && <p className="text-sm text-soft">It ends {momentIn(until, timezone)}.</p>}
        <blockquote className="border-l-2 border-line pl-3 wrap-anywhere whitespace-pre-wrap">
          {schedule.instruction || "(The mail that it works on says nothing itself.)"}
        </blockquote>
        <p className="text-sm text-soft">
          {inbox && (
            <>
              Done by{" "}
              <Link to="/inboxes/$inbox_id" params={{ inbox_id: inbox.id }} className="underline">
                {inbox.label}
              </Link>
              .{" "}
            </>
          )}
          {overWords(schedule)}
          {created_by === null ? "" : `Made by a mail of ${created_by}. `}
          <Link to="/messages/$message_id" params={{ message_id: schedule.message_id }} className="underline">
            What it works on
          </Link>
        </p>
      </div>
    </Card>
  );
}

function overWords({ over, inbox_id }: ScheduleView): string {
  if (over === null) return "";
  const whose =
    over.inbox_id === null ? "any inbox" : over.inbox_id === inbox_id ? "this inbox" : "another inbox";
  const which = [
    ...(over.tag === null ? [] : [`with the tag #${over.tag}`]),
    ...(over.rule === null ? [] : [`by the rule “${over.rule}”`]),
  ];
  return `It reads mail that came to ${[whose, ...which].join(" ")} since its last run. `;
}

function Runs({ schedule: { id } }: { schedule: ScheduleView }) {
  const runs = useInfiniteQuery({
    ...paged<Activity>(runsKey(id), `/v1/schedules/${id}/runs`),
    refetchInterval: REFRESH_MS,
  });
  return (
    <section className="grid gap-3" aria-label="Runs">
      <h2 className="text-lg font-semibold">Runs</h2>
      <Fault error={runs.error} retry={() => void runs.refetch()} />
      {runs.isPending && <Loading what="the runs" />}
      {runs.data?.length === 0 && <p className="text-soft">It has not run yet.</p>}
      {runs.data && runs.data.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {runs.data.map((message) => (
            <li key={message.message_id}>
              <Link
                to="/messages/$message_id"
                params={{ message_id: message.message_id }}
                className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
              >
                <span className="text-sm text-soft">
                  <Time at={message.created} />
                </span>
                <span className="min-w-0 flex-1 basis-48 truncate">{message.error ?? message.result}</span>
                <StatusBadge message={message} />
              </Link>
            </li>
          ))}
        </ul>
      )}
      {runs.hasNextPage && <More of={runs} />}
    </section>
  );
}

function Change({
  schedule,
  onChanged,
  onClose,
}: {
  schedule: ScheduleView;
  onChanged: () => void;
  onClose: () => void;
}) {
  const [before] = useState(() => settingsOf(schedule));
  const [settings, setSettings] = useState(before);
  const change = useChange<void>({
    run: () => patch(`/v1/schedules/${schedule.id}`, changesOf(before, settings)),
    touches: [scheduleList.queryKey],
    done: onChanged,
  });
  return (
    <Dialog title="Change the schedule" onClose={onClose}>
      <Form change={change} act="Save" onCancel={onClose}>
        <ScheduleFields settings={settings} fault={faultOf(change.error)} onChange={setSettings} />
      </Form>
    </Dialog>
  );
}
