import { useQuery } from "@tanstack/react-query";
import { Pause, Play } from "lucide-react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { JOB_RULES, type JobKind } from "../../../jobs/kinds.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { overview } from "./queries.ts";

const TOUCHES = [overview.queryKey, ["admin", "queue"], ["admin", "backups"]];

/** The switches that hold kinds of work, and let them go on. */
export function Holds() {
  const { data } = useQuery(overview);
  const hold = useChange({ run: () => post("/admin/queue/hold", {}), touches: TOUCHES });
  const release = useChange({ run: () => post("/admin/queue/release", {}), touches: TOUCHES });
  if (!data) return null;
  if (data.held.length === 0)
    return (
      <>
        <Button icon={<Pause />} busy={hold.isPending} onClick={() => hold.mutate()}>
          Hold the work
        </Button>
        <Fault error={hold.error} />
      </>
    );
  const names = data.held.map((kind) => JOB_RULES[kind as JobKind]?.shown ?? kind);
  return (
    <div className="grid w-full gap-2">
      <Notice look="warn">
        <p>Held: {names.join(", ")}. Mail still comes in and waits; none of these is begun.</p>
        <Button className="mt-2" icon={<Play />} busy={release.isPending} onClick={() => release.mutate()}>
          Let it go on
        </Button>
      </Notice>
      <Fault error={release.error} />
    </div>
  );
}
