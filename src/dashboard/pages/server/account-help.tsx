import { useQuery } from "@tanstack/react-query";
import { KeyRound, MailPlus } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { serverFacts, useMe } from "../../api/session.ts";
import type { AdminUser } from "../../api/shapes.ts";
import { IconButton } from "../../ui/button.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";
import { isStale, SignInAgain } from "../settings/sign-in-again.tsx";

export const ACCOUNTS = ["admin", "users"];
export const PLANS: Record<AdminUser["plan"], string> = { free: "Free", pro: "Pro", team: "Team" };
/** The address of the list of accounts. */
const HERE = "/app/server#accounts";

/** While the server mails nothing. */
const KEPT = "the invitation is kept here, under Outgoing mail";

export function InviteDialog({ onClose }: { onClose: () => void }) {
  const say = useToast();
  const { data: server } = useQuery(serverFacts);
  const [email, setEmail] = useState("");
  const [plan, setPlan] = useState("");
  const invite = useChange<void, AdminUser>({
    run: () => post<AdminUser>("/admin/users", { email: email.trim(), ...(plan ? { plan } : {}) }),
    touches: [ACCOUNTS],
    done: (made) => {
      const letter = server?.outbound_mode === "capture" ? KEPT : "an invitation is on its way";
      say(`${made.email} has an account, and ${letter}.`);
      onClose();
    },
  });
  return (
    <Dialog title="Make an account" onClose={onClose}>
      <div className="grid gap-4">
        <p className="text-soft">
          Its owner gets a mail with a link, and signs in with a code. It works as well where the registration
          is closed.
        </p>
        <Form change={invite} act="Make it and invite" onCancel={onClose}>
          <TextField
            label="Mail address"
            type="email"
            required
            autoComplete="off"
            fault={faultOf(invite.error)("email")}
            value={email}
            onChange={setEmail}
          />
          <Field label="Plan">
            <Select value={plan} onChange={(event) => setPlan(event.target.value)}>
              <option value="">The usual one</option>
              {Object.entries(PLANS).map(([name, words]) => (
                <option key={name} value={name}>
                  {words}
                </option>
              ))}
            </Select>
          </Field>
        </Form>
        {isStale(invite.error) && <SignInAgain to={HERE} onAgain={() => invite.mutate()} />}
      </div>
    </Dialog>
  );
}

/** The ways to help somebody who cannot sign in. */
export function Help({ user: { id, email, has_password } }: { user: AdminUser }) {
  const me = useMe();
  const say = useToast();
  const { data: server } = useQuery(serverFacts);
  const [resetting, setResetting] = useState(false);
  const send = useChange<void, { retry_after: number }>({
    run: () => post<{ retry_after: number }>(`/admin/users/${id}/send-code`),
    touches: [],
    done: () =>
      say(
        server?.outbound_mode === "capture"
          ? `A code for ${email} is kept here, under Outgoing mail. It is good for ten minutes.`
          : `A code is on its way to ${email}. It is good for ten minutes.`,
      ),
  });
  const reset = useChange({
    run: () => post(`/admin/users/${id}/reset-password`),
    touches: [ACCOUNTS],
    done: () => {
      setResetting(false);
      say(`${email} signs in with a code now, and has been told.`);
    },
  });
  if (id === me.id) return null;
  return (
    <span className="flex gap-1">
      <IconButton label={`Send ${email} a code`} busy={send.isPending} onClick={() => send.mutate()}>
        <MailPlus />
      </IconButton>
      {has_password && (
        <IconButton label={`Reset the password of ${email}`} onClick={() => setResetting(true)}>
          <KeyRound />
        </IconButton>
      )}
      {resetting && (
        <Confirm
          title={`Reset the password of ${email}?`}
          act="Reset the password"
          busy={reset.isPending}
          error={reset.error}
          onConfirm={() => reset.mutate()}
          onClose={() => setResetting(false)}
        >
          <p>
            The password stops working, and every browser of the account is signed out. Its owner is told by
            mail, signs in with a code and may choose another. API keys go on.
          </p>
          {isStale(reset.error) && <SignInAgain to={HERE} onAgain={() => reset.mutate()} />}
        </Confirm>
      )}
    </span>
  );
}
