import { useMutation } from "@tanstack/react-query";
import { Download, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { remove } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";

/** Taking everything along, and leaving for good. */
export function AccountEnd() {
  const [asked, setAsked] = useState(false);
  return (
    <Card title="Your data">
      <div className="flex flex-wrap gap-2">
        <a href="/auth/export" download className={`${BUTTON} border border-line bg-card hover:bg-hover`}>
          <Download aria-hidden /> Download everything
        </a>
        <Button look="danger" icon={<Trash2 />} onClick={() => setAsked(true)}>
          Delete the account
        </Button>
      </div>
      {asked && <DeleteAccount onClose={() => setAsked(false)} />}
    </Card>
  );
}

function DeleteAccount({ onClose }: { onClose: () => void }) {
  const { email, has_password } = useMe();
  const [confirm, setConfirm] = useState("");
  const [password, setPassword] = useState("");
  const erase = useMutation({
    mutationFn: () => remove("/auth/account", { confirm, ...(has_password ? { password } : {}) }),
    onSuccess: () => location.assign("/app/sign-in"),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    erase.mutate();
  };
  return (
    <Dialog title="Delete the account?" onClose={onClose}>
      <form onSubmit={submit} className="grid gap-4">
        <Notice look="bad">
          Every message, inbox, context and connection of yours is erased at once, and your addresses are
          never given to anybody again. This cannot be undone.
        </Notice>
        <Field label={`Type ${email} to confirm`}>
          <Input
            required
            autoComplete="off"
            value={confirm}
            onChange={(event) => setConfirm(event.target.value)}
          />
        </Field>
        {has_password && (
          <Field label="Password">
            <Input
              required
              type="password"
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.target.value)}
            />
          </Field>
        )}
        <Fault error={erase.error} />
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>Keep it</Button>
          <Button look="danger" type="submit" busy={erase.isPending} disabled={confirm !== email}>
            Delete the account
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
