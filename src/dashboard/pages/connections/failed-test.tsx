import type { ReactNode } from "react";
import type { ConnectionTest } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/notice.tsx";
import { providerOf } from "./providers.ts";

interface FailedTestProps {
  verdict: ConnectionTest;
  /** Called with the address at which the test found an interface. */
  onMove: (base_url: string) => void;
  busy?: boolean;
  children?: ReactNode;
}

/** Why a test failed, with buttons for what can be done about it here. */
export function FailedTest({ verdict, onMove, busy = false, children }: FailedTestProps) {
  const { error, suggested_base_url } = verdict;
  if (!error) return null;
  return (
    <Notice look="bad">
      <p>{error.message}</p>
      {error.code === "unreachable" && <Unreached kind={verdict.kind} />}
      <div className="mt-2 grid justify-items-start gap-2 text-text empty:hidden">
        {suggested_base_url !== undefined && (
          <Button
            busy={busy}
            className="wrap-anywhere whitespace-normal"
            onClick={() => onMove(suggested_base_url)}
          >
            Use {suggested_base_url}
          </Button>
        )}
        {children}
      </div>
    </Notice>
  );
}

/** Hints for an Ollama that was not reached: it runs on a machine of one's own, mostly at the usual address. */
function Unreached({ kind }: Pick<ConnectionTest, "kind">) {
  if (kind !== "ollama") return null;
  const usual = providerOf(kind)?.base_url?.placeholder;
  return <p className="text-text">“ollama serve” starts it. Left empty, the address is {usual}.</p>;
}
