import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError, faultOf, post } from "../../api/client.ts";
import { serverFacts } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { EmailField, TextField } from "../../ui/text-field.tsx";
import { useWelcome, type WayProps } from "./welcome.ts";

/** A code that is pasted may have blanks before it and in it, so that the field itself cuts nothing. */
const DIGITS = 6;

/** Signing in by code: first the address, then the six digits that were mailed to it. */
export function ByCode({ opened, email, onEmail }: WayProps) {
  const [sent, setSent] = useState(false);
  const [again, setAgain] = useState(false);
  const [wait, startWait] = useCountdown();
  const send = useMutation({
    mutationFn: () => post<{ retry_after: number }>("/auth/request-code", { email }),
    onSuccess: ({ retry_after }) => {
      setSent(true);
      startWait(retry_after);
    },
  });
  if (!sent)
    return (
      <Form change={send} act="Send me a code">
        <EmailField
          autoFocus={opened || again}
          placeholder="you@example.org"
          fault={faultOf(send.error)("email")}
          value={email}
          onChange={onEmail}
        />
      </Form>
    );
  return (
    <div className="grid gap-4">
      <CodeForm email={email} />
      <Fault error={send.error} />
      <div className="flex flex-wrap justify-between gap-2">
        <Button look="quiet" busy={send.isPending} disabled={wait > 0} onClick={() => send.mutate()}>
          {wait > 0 ? `Send again in ${timeOf(wait)}` : "Send again"}
        </Button>
        <Button
          look="quiet"
          onClick={() => {
            setSent(false);
            setAgain(true);
            send.reset();
          }}
        >
          Other address
        </Button>
      </div>
    </div>
  );
}

function CodeForm({ email }: { email: string }) {
  const [code, setCode] = useState("");
  const welcome = useWelcome("code");
  const { data: server } = useQuery(serverFacts);
  const verify = useMutation({
    mutationFn: () => post<Me>("/auth/verify", { email, code }).catch(mendHere),
    onSuccess: welcome,
  });
  return (
    <Form change={verify} act="Sign in">
      <TextField
        label="Code"
        hint={
          server?.outbound_mode === "capture"
            ? `This server sends no mail yet: if ${email} may sign in here, its six digits are in the log of the server. They are good for ten minutes.`
            : `If ${email} may sign in here, six digits are on their way to it. They are good for ten minutes.`
        }
        fault={faultOf(verify.error)("code")}
        autoFocus
        required
        inputMode="numeric"
        autoComplete="one-time-code"
        pattern="[0-9]{6}"
        title="Six digits"
        value={code}
        onChange={(text) => setCode(text.replaceAll(/\D/g, "").slice(0, DIGITS))}
      />
    </Form>
  );
}

/** Rewrites an error so that it names the button here; the server's own words name a call. */
function mendHere(error: unknown): never {
  if (!(error instanceof ApiError) || error.problem.code !== "invalid_code") throw error;
  throw new ApiError({
    ...error.problem,
    fix: "Ask for a new one with “Send again”. One that a tool has shown, as by a look into your mailbox, does not count either.",
  });
}

function timeOf(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}

/** A countdown: the seconds left, and the function that starts it. */
function useCountdown(): [number, (seconds: number) => void] {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1_000);
    return () => clearTimeout(timer);
  }, [left]);
  return [left, setLeft];
}
