import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { faultOf, post } from "../../api/client.ts";
import { session } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { EmailField, PasswordField, TextField } from "../../ui/text-field.tsx";

/** The link that a new server prints at its start leads here: makes the account that runs it. */
export function Setup() {
  const { token } = useSearch({ from: "/setup" });
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  useEffect(() => {
    document.title = "Set up · Mailwright";
  }, []);
  const make = useMutation({
    mutationFn: () =>
      post<Me>("/setup", { token, email, ...(name ? { name } : {}), ...(password ? { password } : {}) }),
    onSuccess: (me) => {
      queries.setQueryData(session.queryKey, me);
      void navigate({ to: "/welcome" });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate();
  };
  const fault = faultOf(make.error);
  return (
    <main className="grid min-h-dvh content-center justify-items-center gap-6 px-4 py-10">
      <div className="grid justify-items-center gap-2 text-center">
        <img src="/app/icon.svg" alt="" className="size-12" />
        <h1 className="text-2xl font-semibold">Your server is running</h1>
        <p className="max-w-md text-soft">
          Make the account that looks after it. Then you connect a model and get your first address; that
          takes two minutes.
        </p>
      </div>
      <form
        onSubmit={submit}
        className="grid w-full max-w-sm gap-4 rounded-xl border border-line bg-card p-5"
      >
        {!token && <Notice look="warn">Open the whole link that the server printed when it started.</Notice>}
        <EmailField
          hint="What you write from here commands your inboxes."
          fault={fault("email")}
          autoFocus
          value={email}
          onChange={setEmail}
        />
        <TextField
          label="Name"
          fault={fault("name")}
          maxLength={100}
          autoComplete="name"
          value={name}
          onChange={setName}
        />
        <PasswordField
          isNew
          hint="At least 8 characters. As long as the server can’t send mail, it is your only way to sign in."
          fault={fault("password")}
          value={password}
          onChange={setPassword}
        />
        <Fault error={make.error} />
        <Button look="main" type="submit" busy={make.isPending} disabled={!token}>
          Make the account
        </Button>
      </form>
    </main>
  );
}
