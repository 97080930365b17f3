import { useMutation } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { faultOf, remove } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { PasswordField, TextField } from "../../ui/text-field.tsx";
import { Export } from "./export.tsx";

/** The export of the account, and its deletion. */
export function AccountEnd() {
  const [asked, setAsked] = useState(false);
  return (
    <Card title="Your data">
      <div className="grid gap-5">
        <Export />
        <div className="grid justify-items-start gap-2 border-t border-line pt-4">
          <p className="text-sm text-soft">Deleting the account erases all of it at once and for good.</p>
          <Button look="danger" icon={<Trash2 />} onClick={() => setAsked(true)}>
            Delete the account
          </Button>
        </div>
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
  return (
    <Dialog title="Delete the account?" onClose={onClose}>
      <Form
        change={erase}
        act="Delete the account"
        look="danger"
        disabled={confirm.trim() !== email}
        onCancel={onClose}
        cancel="Keep it"
      >
        <Notice look="bad">
          Every message, inbox, context and connection of yours is erased at once, and your addresses are
          never given to anybody again. This cannot be undone. Download everything first if you may want it.
        </Notice>
        <TextField
          label={`Type ${email} to confirm`}
          fault={faultOf(erase.error)("confirm")}
          required
          autoComplete="off"
          value={confirm}
          onChange={setConfirm}
        />
        {has_password && <PasswordField value={password} onChange={setPassword} />}
      </Form>
    </Dialog>
  );
}
