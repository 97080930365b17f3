import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useState } from "react";
import { testRuns, testSet } from "../../api/lists.ts";
import type { StarredMessage } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { ExpectedDialog } from "./expected-dialog.tsx";
import { RunForm } from "./run-form.tsx";
import { Runs } from "./runs.tsx";
import { expectedWords } from "./words.ts";

/** How often the runs are asked for while one is under way. */
const SOON_MS = 1_000;

/** Starred messages, and their runs against other models and contexts. */
export function TestSet() {
  const { data: set, error, isPending, refetch } = useQuery(testSet);
  const runs = useQuery({
    ...testRuns,
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status === "processing") ? SOON_MS : false,
  });
  const [asks, setAsks] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const button = (
    <Button look="main" icon={<Play />} onClick={() => setAsks(true)}>
      Run the test set
    </Button>
  );
  return (
    <Page
      title="Test set"
      intro="Messages that you have starred, each with what its answer should be. Run them against another model or other contexts: nothing is mailed, and no tool is called."
      actions={set && set.length > 0 && button}
    >
      <Fault error={error ?? runs.error} retry={() => void refetch()} />
      {isPending && <Loading what="the test set" />}
      {runs.data && runs.data.length > 0 && <Runs runs={runs.data} chosen={chosen} choose={setChosen} />}
      {set?.length === 0 && (
        <Empty title="No message is starred yet">
          Open a message that was answered, choose “Star it as a test”, and say what its answer should be.
        </Empty>
      )}
      {set && set.length > 0 && (
        <Card title={set.length === 1 ? "1 starred message" : `${set.length} starred messages`}>
          <ul className="-m-4 divide-y divide-line">
            {set.map((starred) => (
              <Row key={starred.message_id} starred={starred} />
            ))}
          </ul>
        </Card>
      )}
      {asks && (
        <RunForm
          onMade={({ id }) => {
            setChosen(id);
            setAsks(false);
          }}
          onClose={() => setAsks(false)}
        />
      )}
    </Page>
  );
}

function Row({ starred: { message_id, subject, instruction, expected } }: { starred: StarredMessage }) {
  const [asks, setAsks] = useState(false);
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
      <span className="grid min-w-0 flex-1 basis-48">
        <Link
          to="/messages/$message_id"
          params={{ message_id }}
          className="truncate font-medium text-accent underline"
        >
          {subject || instruction || "(no subject)"}
        </Link>
        <span className="text-sm text-soft wrap-anywhere">
          {expected === null
            ? "What is expected cannot be read any more."
            : `The answer ${expectedWords(expected)}.`}
        </span>
      </span>
      <Button onClick={() => setAsks(true)} aria-label={`Expected answer to ${subject || instruction}`}>
        Expected answer
      </Button>
      {asks && (
        <ExpectedDialog
          message_id={message_id}
          expected={expected}
          answer=""
          touches={[testSet.queryKey, ["story", message_id]]}
          onClose={() => setAsks(false)}
        />
      )}
    </li>
  );
}
