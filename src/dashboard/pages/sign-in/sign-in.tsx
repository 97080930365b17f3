import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { faultOf, post } from "../../api/client.ts";
import { session } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { EmailField, PasswordField } from "../../ui/text-field.tsx";

type Way = "code" | "password";

/** Two ways in: a code by mail, which also makes an account, or a password for who has chosen one. */
export function SignIn() {
  const [way, setWay] = useState<Way>("code");
  const [email, setEmail] = useState("");
  useEffect(() => {
    document.title = "Sign in · Mailwright";
  }, []);
  return (
    <main className="grid min-h-dvh content-center justify-items-center gap-6 px-4 py-10">
      <div className="grid justify-items-center gap-2 text-center">
        <img src="/app/icon.svg" alt="" className="size-12" />
        <h1 className="text-2xl font-semibold">Sign in to Mailwright</h1>
        <p className="max-w-sm text-soft">The mail server that does the work your mails ask for.</p>
      </div>
      <div className="w-full max-w-sm rounded-xl border border-line bg-card p-5">
        <Tabs<Way>
          label="Ways to sign in"
          tabs={[
            { id: "code", title: "Code by mail" },
            { id: "password", title: "Password" },
          ]}
          chosen={way}
          onChoose={setWay}
        >
          {way === "code" ? (
            <ByCode email={email} onEmail={setEmail} />
          ) : (
            <ByPassword email={email} onEmail={setEmail} />
          )}
        </Tabs>
      </div>
    </main>
  );
}

interface WayProps {
  email: string;
  onEmail: (email: string) => void;
}

function ByCode({ email, onEmail }: WayProps) {
  const [code, setCode] = useState("");
  const [wait, startWait] = useCountdown();
  const welcome = useWelcome();
  const send = useMutation({
    mutationFn: () => post<{ retry_after: number }>("/auth/request-code", { email }),
    onSuccess: ({ retry_after }) => startWait(retry_after),
  });
  const verify = useMutation({
    mutationFn: () => post<Me>("/auth/verify", { email, code }),
    onSuccess: welcome,
  });
  const sent = send.isSuccess;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (sent) verify.mutate();
    else send.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <EmailField
        placeholder="you@example.org"
        fault={faultOf(send.error)("email")}
        readOnly={sent}
        value={email}
        onChange={onEmail}
      />
      {sent && (
        <Field label="Code" hint={`We sent six digits to ${email}. They are good for ten minutes.`}>
          <Input
            autoFocus
            required
            inputMode="numeric"
            autoComplete="one-time-code"
            maxLength={6}
            pattern="[0-9]{6}"
            value={code}
            onChange={(event) => setCode(event.target.value.replace(/\D/g, ""))}
          />
        </Field>
      )}
      <Fault error={verify.error ?? send.error} />
      <Button look="main" type="submit" busy={send.isPending || verify.isPending}>
        {sent ? "Sign in" : "Send me a code"}
      </Button>
      {sent && (
        <div className="flex flex-wrap justify-between gap-2">
          <Button look="quiet" disabled={wait > 0} onClick={() => send.mutate()}>
            {wait > 0 ? `Send again in ${wait} s` : "Send again"}
          </Button>
          <Button
            look="quiet"
            onClick={() => {
              setCode("");
              send.reset();
              verify.reset();
            }}
          >
            Other address
          </Button>
        </div>
      )}
    </form>
  );
}

function ByPassword({ email, onEmail }: WayProps) {
  const [password, setPassword] = useState("");
  const welcome = useWelcome();
  const login = useMutation({
    mutationFn: () => post<Me>("/auth/login", { email, password }),
    onSuccess: welcome,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    login.mutate();
  };
  return (
    <form onSubmit={submit} className="grid gap-4">
      <EmailField
        placeholder="you@example.org"
        fault={faultOf(login.error)("email")}
        value={email}
        onChange={onEmail}
      />
      <PasswordField
        hint="None chosen yet, or forgotten? Sign in with a code instead."
        value={password}
        onChange={setPassword}
      />
      <Fault error={login.error} />
      <Button look="main" type="submit" busy={login.isPending}>
        Sign in
      </Button>
    </form>
  );
}

/** Goes on to where the person wanted to be. */
function useWelcome(): (me: Me) => void {
  const queries = useQueryClient();
  const { to } = useSearch({ from: "/sign-in" });
  return (me) => {
    queries.setQueryData(session.queryKey, me);
    location.assign(to ?? "/app");
  };
}

/** Seconds left, and how to start them. */
function useCountdown(): [number, (seconds: number) => void] {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1_000);
    return () => clearTimeout(timer);
  }, [left]);
  return [left, setLeft];
}
