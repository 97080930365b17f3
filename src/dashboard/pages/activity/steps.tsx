import { Ban, CircleAlert, CircleCheck } from "lucide-react";
import type { RoutingResult } from "../../api/shapes.ts";

type Step = RoutingResult["steps"][number];

const ICONS: Record<string, { icon: typeof Ban; look: string; word: string }> = {
  ok: { icon: CircleCheck, look: "text-good", word: "Done" },
  error: { icon: CircleAlert, look: "text-bad", word: "Failed" },
  blocked: { icon: Ban, look: "text-warn", word: "Not allowed" },
};
const TYPES: Record<string, string> = {
  tool_call: "Tool",
  context: "Context",
  extract: "File",
  warning: "Note",
};

/** What a run did on its way, each with its arguments and what came of it. */
export function Steps({ steps }: { steps: Step[] }) {
  if (steps.length === 0) return null;
  return (
    <ol aria-label="Steps" className="divide-y divide-line rounded-md border border-line">
      {steps.map((step) => (
        <StepRow key={step.index} step={step} />
      ))}
    </ol>
  );
}

function StepRow({ step }: { step: Step }) {
  const state = ICONS[step.status];
  const Icon = state?.icon ?? CircleAlert;
  return (
    <li>
      <details>
        <summary className="flex items-center gap-2 px-3 py-2 text-sm">
          <Icon aria-label={state?.word ?? step.status} className={`size-4 shrink-0 ${state?.look ?? ""}`} />
          <span className="text-soft">{TYPES[step.type] ?? step.type}</span>
          <span className="min-w-0 flex-1 truncate font-medium">
            {[step.server, step.name].filter(Boolean).join(" · ")}
          </span>
          {step.status === "blocked" && <span className="text-warn">Not allowed</span>}
          {typeof step.duration_ms === "number" && <span className="text-soft">{step.duration_ms} ms</span>}
        </summary>
        <div className="grid gap-2 border-t border-line px-3 py-2 text-sm">
          {step.arguments !== undefined && (
            <Text words="Asked for" text={JSON.stringify(step.arguments, null, 2)} />
          )}
          {step.output && <Text words="What came back" text={step.output} />}
        </div>
      </details>
    </li>
  );
}

function Text({ words, text }: { words: string; text: string }) {
  return (
    <div>
      <p className="text-soft">{words}</p>
      <pre className="max-h-64 overflow-auto rounded-md bg-back p-2 font-mono whitespace-pre-wrap wrap-anywhere">
        {text}
      </pre>
    </div>
  );
}
