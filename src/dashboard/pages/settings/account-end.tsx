import { useMutation } from "@tanstack/react-query";
import { Download, Trash2 } from "lucide-react";
import { useState } from "react";
import { remove } from "../../api/client.ts";
import { useMe } from "../../api/session.ts";
import { BUTTON, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { PasswordField, TextField } from "../../ui/text-field.tsx";

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
  return (
    <Dialog title="Delete the account?" onClose={onClose}>
      <Form
        change={erase}
        act="Delete the account"
        look="danger"
        disabled={confirm !== email}
        onCancel={onClose}
        cancel="Keep it"
      >
        <Notice look="bad">
          Every message, inbox, context and connection of yours is erased at once, and your addresses are
          never given to anybody again. This cannot be undone.
        </Notice>
        <TextField
          label={`Type ${email} to confirm`}
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
