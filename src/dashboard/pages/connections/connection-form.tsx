import { useNavigate } from "@tanstack/react-router";
import { LogIn } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { TextField } from "../../ui/text-field.tsx";
import type { Provider } from "./providers.ts";

interface FormProps {
  provider: Provider;
  onClose: () => void;
}

/** Makes a connection of one kind and tests it at once: its page shows the verdict. */
export function ConnectionForm({ provider, onClose }: FormProps) {
  const navigate = useNavigate();
  const [label, setLabel] = useState(provider.name);
  const [credential, setCredential] = useState("");
  const [base_url, setBaseUrl] = useState("");
  const [model, setModel] = useState("");
  const create = useChange<void, Connection>({
    run: () =>
      post<Connection>("/connections", {
        kind: provider.kind,
        label,
        ...filled({ credential, base_url, model }),
      }),
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: ({ id }) =>
      void navigate({
        to: "/connections/$connection_id",
        params: { connection_id: id },
        search: { test: true },
      }),
  });
  const fault = faultOf(create.error);
  return (
    <Dialog title={`Connect ${provider.name}`} onClose={onClose}>
      <div className="grid gap-4">
        <p className="text-soft">{provider.words}</p>
        {provider.category === "integration" && <SignInThere provider={provider} />}
        <Form change={create} act="Connect and test" onCancel={onClose}>
          <TextField label="Name" fault={fault("label")} maxLength={100} value={label} onChange={setLabel} />
          {provider.base_url && (
            <TextField
              label="Address"
              hint={provider.base_url.hint}
              fault={fault("base_url")}
              type="url"
              required={provider.base_url.required}
              placeholder={provider.base_url.placeholder}
              value={base_url}
              onChange={setBaseUrl}
            />
          )}
          {provider.key && (
            <TextField
              label="Key"
              hint={provider.key.hint}
              fault={fault("credential")}
              type="password"
              autoComplete="off"
              required={provider.key.required}
              value={credential}
              onChange={setCredential}
            />
          )}
          {provider.category === "llm" && provider.kind !== "demo" && (
            <TextField
              label="Model"
              hint="Left empty, a good one is chosen. You can pick another after the test."
              fault={fault("model")}
              maxLength={200}
              value={model}
              onChange={setModel}
            />
          )}
        </Form>
      </div>
    </Dialog>
  );
}

/** The round trip over the provider's own page. */
function SignInThere({ provider }: { provider: Provider }) {
  const leave = useChange<void, { authorize_url: string }>({
    run: () => post<{ authorize_url: string }>(`/integrations/${provider.kind}/connect`),
    touches: [],
    done: ({ authorize_url }) => location.assign(authorize_url),
  });
  return (
    <div className="grid gap-3 border-b border-line pb-4">
      <Button look="main" icon={<LogIn />} busy={leave.isPending} onClick={() => leave.mutate()}>
        Sign in at {provider.name}
      </Button>
      <Fault error={leave.error} />
      <p className="text-sm text-soft">Or use a token that you have made there:</p>
    </div>
  );
}

function filled(members: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ""));
}
