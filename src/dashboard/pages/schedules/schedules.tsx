import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { scheduleList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Schedule } from "../../api/shapes.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { newBodyOf, newSettings, ScheduleFields } from "./schedule-fields.tsx";
import { whenWords } from "./words.ts";

export function Schedules() {
  const { data: schedules, error, isPending, refetch } = useQuery(scheduleList);
  const [making, setMaking] = useState(false);
  const { limits } = useMe();
  const button = (
    <Button look="main" icon={<Plus />} onClick={() => setMaking(true)}>
      New schedule
    </Button>
  );
  const counted = schedules?.filter(({ status }) => status !== "ended").length ?? 0;
  return (
    <Page
      title="Schedules"
      intro="What is to be done again and again, or later: a digest each morning, a reminder on Friday. The answers come by mail."
      actions={schedules && schedules.length > 0 && button}
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="your schedules" />}
      {schedules?.length === 0 && (
        <Empty title="No schedule yet" action={button}>
          Make one here, or begin a mail to an inbox of yours with a line such as{" "}
          <code className="font-mono">--every="weekday 8:00"</code>.
        </Empty>
      )}
      {schedules && schedules.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
          {schedules.map((schedule) => (
            <Row key={schedule.id} schedule={schedule} />
          ))}
        </ul>
      )}
      {schedules && (
        <p className="text-sm text-soft">
          <Allowance count={counted} limit={limits.schedules} noun="schedules" />
        </p>
      )}
      {making && <NewSchedule onClose={() => setMaking(false)} />}
    </Page>
  );
}

function Row({ schedule }: { schedule: Schedule }) {
  const [next] = schedule.next_times;
  return (
    <li>
      <Link
        to="/schedules/$schedule_id"
        params={{ schedule_id: schedule.id }}
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
      >
        <span className="grid min-w-0 flex-1 basis-48">
          <span className="truncate font-medium">{schedule.title}</span>
          <span className="truncate text-sm text-soft">{whenWords(schedule)}</span>
        </span>
        {next !== undefined && (
          <span className="text-sm text-soft">
            Next <Time at={next} />
          </span>
        )}
        <ScheduleState schedule={schedule} />
      </Link>
    </li>
  );
}

export function ScheduleState({ schedule: { status, failures } }: { schedule: Schedule }) {
  if (status === "paused") return <Badge look={failures > 0 ? "bad" : "warn"}>Paused</Badge>;
  if (status === "unclear") return <Badge look="warn">Needs a time</Badge>;
  if (status === "ended") return <Badge>Over</Badge>;
  return failures > 0 ? <Badge look="warn">{failures} failed in a row</Badge> : <Badge look="good">On</Badge>;
}

function NewSchedule({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const { timezone } = useMe();
  const [settings, setSettings] = useState(() => newSettings(timezone));
  const create = useChange<void, Schedule>({
    run: () => post<Schedule>("/v1/schedules", newBodyOf(settings)),
    touches: [scheduleList.queryKey],
    done: ({ id }) => void navigate({ to: "/schedules/$schedule_id", params: { schedule_id: id } }),
  });
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <Form change={create} act="Make the schedule" onCancel={onClose}>
        <ScheduleFields settings={settings} fault={faultOf(create.error)} isNew onChange={setSettings} />
      </Form>
    </Dialog>
  );
}
