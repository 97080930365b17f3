import { Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { PullProgress } from "../../../resources/connections/pull-model.ts";
import { eventsOf } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";

/** The model that an Ollama is asked where none is chosen. */
export const USUAL_OLLAMA_MODEL = "llama3.2";

interface PullModelProps {
  /** The path of the API, and the body that it is sent. */
  path: string;
  body: object;
  model: string;
  onDone: () => void;
}

/** Has an Ollama fetch a model that it does not have, for as long as this stays open. */
export function PullModel({ path, body, model, onDone }: PullModelProps) {
  const { is_admin } = useMe();
  const [progress, setProgress] = useState<PullProgress>();
  const [error, setError] = useState<unknown>();
  const leave = useRef<AbortController>(undefined);
  useEffect(() => () => leave.current?.abort(), []);
  if (!is_admin)
    return (
      <p className="text-sm">
        Whoever runs that Ollama can have it fetch {model}: ollama pull {model}
      </p>
    );
  const begin = async (): Promise<void> => {
    const { signal } = (leave.current = new AbortController());
    setError(undefined);
    setProgress({ status: "asking for it" });
    try {
      let last: PullProgress = {};
      for await (last of eventsOf<PullProgress>(path, body, signal)) setProgress(last);
      if (signal.aborted) return;
      setProgress(last.error === undefined ? undefined : last);
      if (last.done) onDone();
    } catch (fault) {
      if (signal.aborted) return;
      setProgress(undefined);
      setError(fault);
    }
  };
  const busy = progress !== undefined && progress.error === undefined;
  return (
    <div className="grid gap-2">
      {busy && <Bar progress={progress} model={model} />}
      {progress?.error && <Notice look="bad">{progress.error}</Notice>}
      <Fault error={error} />
      {!busy && (
        <div>
          <Button icon={<Download />} onClick={() => void begin()}>
            Fetch {model}
          </Button>
        </div>
      )}
    </div>
  );
}

function Bar({ progress: { status, completed, total }, model }: { progress: PullProgress; model: string }) {
  const known = total !== undefined && completed !== undefined;
  return (
    <div className="grid gap-1 text-sm">
      <p role="status" className="wrap-anywhere">
        Fetching {model}: {known ? `${gigabytes(completed)} of ${gigabytes(total)} GB` : status}. Leave this
        open; what has come is kept.
      </p>
      <progress
        aria-label={`Fetching ${model}`}
        className="w-full"
        {...(known ? { value: completed, max: total } : {})}
      />
    </div>
  );
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}
