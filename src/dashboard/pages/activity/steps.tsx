import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, CircleAlert, CircleCheck, Info } from "lucide-react";
import { contextList } from "../../api/lists.ts";
import type { RoutingResult, Story } from "../../api/shapes.ts";
import { Badge, type BadgeLook } from "../../ui/badge.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { InboxTabLink } from "./setting-links.tsx";

type Step = RoutingResult["steps"][number];

interface State {
  icon: typeof Ban;
  look: string;
  badge: BadgeLook;
  word: string;
}

const STATES: Record<string, State> = {
  ok: { icon: CircleCheck, look: "text-good", badge: "good", word: "Done" },
  error: { icon: CircleAlert, look: "text-bad", badge: "bad", word: "Failed" },
  blocked: { icon: Ban, look: "text-warn", badge: "warn", word: "Blocked" },
};
const UNKNOWN: State = { icon: CircleAlert, look: "", badge: "plain", word: "Unknown" };
const NOTE = { icon: Info, look: "text-accent" };

/** The standing texts that the model was given with the message. */
export function Contexts({ steps }: { steps: Step[] }) {
  // The default instruction is left out here: the card of the instruction tells of it.
  const used = steps.filter(({ type, name }) => type === "context" && name !== "default_instruction");
  const { data: contexts = [] } = useQuery({ ...contextList, enabled: used.length > 0 });
  if (used.length === 0) return null;
  return (
    <Card title="Contexts used">
      <ul className="grid gap-1">
        {used.map(({ index, output }) => {
          const context = contexts.find(({ slug }) => output?.startsWith(`Context ${slug} `));
          return (
            <li key={index} className="flex flex-wrap gap-x-3 text-sm">
              {context && (
                <Link
                  to="/contexts/$context_id"
                  params={{ context_id: context.id }}
                  className="min-w-0 text-accent underline"
                >
                  {context.title}
                </Link>
              )}
              <span className="min-w-0 text-soft">{output}</span>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

/** What a run has done, in a card of its own. */
export function Done({ steps, inbox_id }: Pick<Story, "steps" | "inbox_id">) {
  const done = steps.filter(({ type }) => type !== "context");
  const blocked = done.filter(({ status }) => status === "blocked").length;
  if (done.length === 0) return null;
  return (
    <Card title="What was done">
      <div className="grid gap-3">
        {blocked > 0 && (
          <Notice look="warn">
            {blocked === 1 ? "One attempt was blocked" : `${blocked} attempts were blocked`}: the model asked
            for something that this message may not do. Each says below why, and what would allow it.
            {inbox_id !== null && (
              <p>
                What this inbox may do without being asked by name is one of{" "}
                <InboxTabLink inbox_id={inbox_id} tab="tools" words="its settings" />.
              </p>
            )}
          </Notice>
        )}
        <Steps steps={done} />
      </div>
    </Card>
  );
}

/** Steps, each with its arguments and its outcome. */
export function Steps({ steps }: { steps: Step[] }) {
  if (steps.length === 0) return null;
  return (
    <ol aria-label="Steps" className="divide-y divide-line rounded-md border border-line">
      {steps.map((step) => (
        <li key={step.index}>
          {step.type === "tool_call" ? <ToolCall step={step} /> : <Remark step={step} />}
        </li>
      ))}
    </ol>
  );
}

function ToolCall({ step }: { step: Step }) {
  const { icon: Icon, look, badge, word } = STATES[step.status] ?? UNKNOWN;
  return (
    <details open={step.status === "blocked"}>
      <summary className="flex items-center gap-2 px-3 py-2 text-sm">
        <Icon aria-hidden className={`size-4 shrink-0 ${look}`} />
        <span className="min-w-0 flex-1 wrap-anywhere">
          <span className="text-soft">Tool</span>{" "}
          <span className="font-medium">{[step.server, step.name].filter(Boolean).join(" · ")}</span>
        </span>
        {typeof step.duration_ms === "number" && (
          <span className="whitespace-nowrap text-soft">{step.duration_ms} ms</span>
        )}
        <Badge look={badge}>{word}</Badge>
      </summary>
      <div className="grid gap-2 border-t border-line px-3 py-2 text-sm">
        {step.arguments !== undefined && (
          <Text words="Asked for" text={JSON.stringify(step.arguments, null, 2)} />
        )}
        {step.output && (
          <Text
            words={step.status === "blocked" ? "Why it was blocked" : "What came back"}
            text={step.output}
          />
        )}
      </div>
    </details>
  );
}

/** Shows a step about a file, a context or a warning, which has one sentence to say. */
function Remark({ step: { status, name, output, type } }: { step: Step }) {
  const { icon: Icon, look } = type === "warning" ? NOTE : (STATES[status] ?? UNKNOWN);
  return (
    <p className="flex items-start gap-2 px-3 py-2 text-sm">
      <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${look}`} />
      <span className="min-w-0 wrap-anywhere">
        {type === "extract" && <span className="font-medium">{name}: </span>}
        {output?.replaceAll("`", "")}
      </span>
    </p>
  );
}

function Text({ words, text }: { words: string; text: string }) {
  return (
    <div>
      <p className="text-soft">{words}</p>
      <LongText label={words} text={text} className="max-h-64 p-2 font-mono" />
    </div>
  );
}
