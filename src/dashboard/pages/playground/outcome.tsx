import { Link } from "@tanstack/react-router";
import { useMe } from "../../api/session.ts";
import type { RoutingResult } from "../../api/shapes.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { figure } from "../../ui/figure.ts";
import { Files } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { useMoney } from "../../ui/money.ts";
import { Notice } from "../../ui/notice.tsx";
import { Spinner } from "../../ui/spinner.tsx";
import { Steps } from "../activity/steps.tsx";
import { Cancel, SoFar } from "../activity/working.tsx";
import type { Run } from "./run.ts";

/** A run that goes on: for how long, and the button to cancel it. */
export function UnderWay({ run: { began, result } }: { run: Run }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-2">
      <p className="flex items-center gap-2 text-soft">
        <Spinner />
        <span>
          Working on it… <SoFar since={began} />
        </span>
      </p>
      {result && <Cancel message_id={result.message_id} />}
    </div>
  );
}

/** What a run has done and said, so far or in the end. */
export function Outcome({ result }: { result: RoutingResult }) {
  return (
    <>
      <Steps steps={result.steps} />
      {result.error && <Notice look="bad">{result.error}</Notice>}
      {result.result && (
        <div className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <ModelText text={result.result} />
          </div>
          <CopyButton text={result.result} label="Copy the answer" />
        </div>
      )}
      <Files files={result.attachments} />
      {result.status !== "processing" && (
        <p className="flex flex-wrap gap-x-3 gap-y-1 border-t border-line pt-3 text-sm text-soft">
          <Cost result={result} />
          <Link
            to="/messages/$message_id"
            params={{ message_id: result.message_id }}
            className="text-accent underline"
          >
            How this answer came about
          </Link>
        </p>
      )}
    </>
  );
}

function Cost({ result: { credits, usage, cost } }: { result: RoutingResult }) {
  const { unlimited } = useMe().credits;
  const money = useMoney();
  const { charged, remaining } = credits;
  const tokens = usage && `${figure(usage.input_tokens + usage.output_tokens)} tokens`;
  const paid = cost !== null && cost > 0 && money(cost);
  const words = [
    `${charged} credit${charged === 1 ? "" : "s"}`,
    tokens,
    paid,
    `${figure(remaining)} credits left`,
  ];
  const said = (unlimited ? [tokens, paid] : words).filter(Boolean);
  return said.length > 0 && <span>{said.join(", ")}.</span>;
}
