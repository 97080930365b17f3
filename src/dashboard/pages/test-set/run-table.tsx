import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { get } from "../../api/client.ts";
import { testRuns } from "../../api/lists.ts";
import type { Replay, Story, TestRun, TestRunCard } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Scroll } from "../../ui/scroll.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Differences } from "../activity/differences.tsx";
import { RUN_FIGURES, RunColumns, RunFigures } from "../activity/run-figures.tsx";
import { expectedWords, outcomeWords, STATUSES } from "./words.ts";

/** How often a run that is under way is asked for. */
const SOON_MS = 1_000;
const COLUMNS = ["Message", "Result", "This run", "Answer that counts", ...RUN_FIGURES];

type Item = TestRun["items"][number];

/** What became of each message of a run, as it becomes, with the sums. */
export function RunTable({ run: { id }, onDeleted }: { run: TestRunCard; onDeleted: () => void }) {
  const [shown, setShown] = useState<string>();
  const { data: run, error } = useQuery({
    queryKey: ["test-run", id],
    queryFn: ({ signal }) => get<TestRun>(`/v1/test-runs/${id}`, signal),
    refetchInterval: ({ state }) => (state.data?.status === "done" ? false : SOON_MS),
  });
  if (!run) return error ? <Fault error={error} /> : <Loading what="the run" />;
  const chosen = run.items.find(({ replay_id }) => replay_id === shown);
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <Fault error={error} />
      <p role="status" className="font-medium">
        {outcomeWords(run)}
      </p>
      <Scroll label="What became of each message">
        <table className="w-full min-w-3xl text-left text-sm">
          <RunColumns names={COLUMNS} />
          <tbody>
            {run.items.map((item) => (
              <Row
                key={item.replay_id}
                item={item}
                isShown={item.replay_id === shown}
                onShow={() => setShown(item.replay_id === shown ? undefined : item.replay_id)}
              />
            ))}
          </tbody>
          <Sums run={run} />
        </table>
      </Scroll>
      {chosen && <Whole key={chosen.replay_id} item={chosen} />}
      <div className="flex justify-end">
        <DeleteButton
          title="Delete this run?"
          act="Delete the run"
          path={`/v1/test-runs/${id}`}
          touches={[testRuns.queryKey]}
          done={onDeleted}
        >
          <p>The messages and their stars stay as they are.</p>
        </DeleteButton>
      </div>
    </div>
  );
}

interface RowProps {
  item: Item;
  isShown: boolean;
  onShow: () => void;
}

function Row({ item, isShown, onShow }: RowProps) {
  const { message_id, subject, instruction, expected, answer_before, answer, status, why } = item;
  const { word, look } = STATUSES[status];
  return (
    <tr className="border-t border-line align-top">
      <td className="max-w-48 py-2 pr-4 wrap-anywhere">
        <Link to="/messages/$message_id" params={{ message_id }} className="text-accent underline">
          {subject || instruction || "(no subject)"}
        </Link>
        {expected && <p className="text-soft">It {expectedWords(expected)}.</p>}
      </td>
      <td className="max-w-56 py-2 pr-4 wrap-anywhere">
        <Badge look={look}>{word}</Badge>
        {why !== null && <p className="pt-1">{why}</p>}
      </td>
      <td className="max-w-56 py-2 pr-4 wrap-anywhere">
        {answer === null ? (
          "–"
        ) : (
          <>
            {answer}{" "}
            <button
              type="button"
              aria-pressed={isShown}
              aria-label={`Compare the answers to ${subject || instruction}`}
              onClick={onShow}
              className="text-accent underline aria-pressed:font-semibold"
            >
              Compare
            </button>
          </>
        )}
      </td>
      <td className="max-w-56 py-2 pr-4 wrap-anywhere">{answer_before || "–"}</td>
      <RunFigures run={item} />
    </tr>
  );
}

function Sums({ run }: { run: TestRun }) {
  return (
    <tfoot>
      <tr className="border-t border-line font-medium">
        <th scope="row" className="py-2 pr-4">
          Together
        </th>
        <td className="py-2 pr-4" colSpan={3}>
          {run.passed} of {run.messages} passed
        </td>
        <RunFigures run={run} />
      </tr>
    </tfoot>
  );
}

/** Both answers to a message, whole. */
function Whole({ item: { message_id, replay_id } }: { item: Item }) {
  const path = `/messages/${message_id}`;
  const { data, error } = useQuery({
    queryKey: ["test-run-answers", replay_id],
    queryFn: async ({ signal }) => ({
      before: (await get<Story>(path, signal)).result,
      after: (await get<Replay>(`${path}/replays/${replay_id}`, signal)).result,
    }),
  });
  if (error) return <Fault error={error} />;
  return data ? <Differences {...data} /> : <Loading what="the answers" />;
}
