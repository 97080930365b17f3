import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useIsBeingDeleted } from "../../api/changes.ts";
import { get } from "../../api/client.ts";
import type { Replay, ReplayCard, Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Differences } from "./differences.tsx";
import { ReplayForm } from "./replay-form.tsx";
import { RUN_FIGURES, RunColumns, RunFigures } from "./run-figures.tsx";
import { Steps } from "./steps.tsx";

/** How often a replay that is under way is asked for. */
const SOON_MS = 1_000;

/** Runs of a message beside the one that counts: what they were asked, and what is otherwise in what they say. */
export function Replays({ story }: { story: Story }) {
  const [asks, setAsks] = useState(false);
  const [shown, setShown] = useState<string>();
  const path = `/messages/${story.message_id}/replays`;
  const { data = [], error } = useQuery({
    queryKey: replaysKey(story),
    queryFn: ({ signal }) => get<ReplayCard[]>(path, signal),
    enabled: !useIsBeingDeleted(story.message_id),
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status === "processing") ? SOON_MS : false,
  });
  const chosen = data.find(({ id }) => id === shown) ?? data.at(-1);
  return (
    <Card title="Run again, otherwise" actions={<Button onClick={() => setAsks(true)}>Run it again</Button>}>
      <div className="grid gap-4">
        <Fault error={error} />
        <p className="text-sm text-soft">
          With another model, other words or other contexts. Nothing is mailed, no tool is called, and the
          answer above stays as it is.
        </p>
        {chosen && (
          <>
            <Table story={story} replays={data} chosen={chosen} choose={setShown} />
            <Shown key={chosen.id} story={story} card={chosen} />
          </>
        )}
      </div>
      {asks && (
        <ReplayForm
          story={story}
          touches={[replaysKey(story)]}
          onMade={({ id }) => {
            setShown(id);
            setAsks(false);
          }}
          onClose={() => setAsks(false)}
        />
      )}
    </Card>
  );
}

function replaysKey({ message_id }: Pick<Story, "message_id">) {
  return ["story", message_id, "replays"];
}

interface TableProps {
  story: Story;
  replays: ReplayCard[];
  chosen: ReplayCard;
  choose: (id: string) => void;
}

/** The run that counts and those beside it, one in each row. */
function Table({ story, replays, chosen, choose }: TableProps) {
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-left text-sm">
        <RunColumns names={["Run", "Model", ...RUN_FIGURES]} />
        <tbody>
          <tr className="border-t border-line">
            <td className="min-w-28 py-2 pr-4">The one that counts</td>
            <td className="py-2 pr-4 wrap-anywhere">{story.model ?? "–"}</td>
            <RunFigures run={story} />
          </tr>
          {replays.map((one, index) => (
            <tr key={one.id} className="border-t border-line">
              <td className="min-w-28 py-2 pr-4">
                <button
                  type="button"
                  aria-pressed={one.id === chosen.id}
                  onClick={() => choose(one.id)}
                  className="text-left text-accent underline aria-pressed:font-semibold"
                >
                  {`${index + 1}: ${wordsOf(one)}`}
                </button>
              </td>
              <td className="py-2 pr-4 wrap-anywhere">{one.model ?? "–"}</td>
              <RunFigures run={one} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What was to be otherwise, in a few words. */
function wordsOf({ asked, status }: ReplayCard): string {
  const { connection_id, model, instruction, contexts, context_versions } = asked;
  const words = [
    ...(model !== null || connection_id !== null ? ["another model"] : []),
    ...(instruction === null ? [] : ["other words"]),
    ...(contexts === "now" || Object.keys(context_versions).length > 0 ? ["other contexts"] : []),
  ];
  const what = words.length === 0 ? "the same" : words.join(", ");
  if (status === "processing") return `${what} (under way)`;
  return status === "failed" ? `${what} (failed)` : what;
}

function Shown({ story, card: { id, status } }: { story: Story; card: ReplayCard }) {
  const path = `/messages/${story.message_id}/replays/${id}`;
  const { data, error } = useQuery({
    queryKey: ["replay", id, status],
    queryFn: ({ signal }) => get<Replay>(path, signal),
  });
  if (error) return <Fault error={error} />;
  if (!data) return <Loading what="the run" />;
  return (
    <div className="grid gap-3 border-t border-line pt-4">
      {data.asked.instruction !== null && (
        <p className="text-sm">
          <span className="text-soft">Asked: </span>
          <span className="whitespace-pre-wrap wrap-anywhere">{data.asked.instruction}</span>
        </p>
      )}
      {data.status === "processing" && <Loading what="what comes of it" />}
      {data.error && <Notice look="bad">{data.error}</Notice>}
      {data.status === "done" && <Differences before={story.result} after={data.result} />}
      {data.steps.length > 0 && (
        <details>
          <summary className="text-sm text-accent">Its steps</summary>
          <div className="pt-3">
            <Steps steps={data.steps} />
          </div>
        </details>
      )}
      <div className="flex justify-end">
        <DeleteButton
          title="Delete this run?"
          act="Delete the run"
          path={path}
          touches={[replaysKey(story)]}
          done={() => {}}
        >
          <p>The message and its answer stay as they are.</p>
        </DeleteButton>
      </div>
    </div>
  );
}
