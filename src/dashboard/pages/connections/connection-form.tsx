import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { AddressField, isProgram } from "./address-field.tsx";
import { changesOf, type Fields, fieldsOf, SpecialFields } from "./fields.tsx";
import type { Provider } from "./providers.ts";
import { SignInThere } from "./sign-in-there.tsx";

interface FormProps {
  provider: Provider;
  onClose: () => void;
  /** What is done with the new connection, instead of opening its page, which tests it. */
  onMade?: (connection: Connection) => void;
}

/** Makes a connection of one kind. */
export function ConnectionForm({ provider, onClose, onMade }: FormProps) {
  const navigate = useNavigate();
  const [fields, setFields] = useState<Fields>(() => fieldsOf({ label: provider.name }));
  const create = useChange<void, Connection>({
    run: () =>
      post<Connection>("/connections", {
        kind: provider.kind,
        label: fields.label,
        ...changesOf(fields, fieldsOf({ label: fields.label }), null),
      }),
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: (connection) => {
      if (onMade) return onMade(connection);
      void navigate({
        to: "/connections/$connection_id",
        params: { connection_id: connection.id },
        search: { test: true },
      });
    },
  });
  const fault = faultOf(create.error);
  const set = (change: Partial<Fields>): void => setFields((before) => ({ ...before, ...change }));
  return (
    <Dialog title={`Connect ${provider.name}`} onClose={onClose}>
      <div className="grid gap-4">
        <p className="text-soft">{provider.words}</p>
        {provider.category === "integration" && (
          <div className="grid gap-3 border-b border-line pb-4">
            <SignInThere path={`/integrations/${provider.kind}/connect`} name={provider.name} look="main" />
            <p className="text-sm text-soft">Or use a token that you have made there:</p>
          </div>
        )}
        <Form change={create} act="Connect and test" onCancel={onClose}>
          <TextField
            label="Name"
            hint={provider.category === "mcp" ? "An instruction calls the tool by it." : undefined}
            fault={fault("label")}
            maxLength={100}
            value={fields.label}
            onChange={(text) => set({ label: text })}
          />
          <AddressField provider={provider} fields={fields} fault={fault} set={set} />
          {provider.key && !isProgram(fields) && (
            <TextField
              label="Key"
              hint={provider.key.hint}
              fault={fault("credential")}
              type="password"
              autoComplete="off"
              required={provider.key.required}
              value={fields.credential}
              onChange={(text) => set({ credential: text })}
            />
          )}
          {provider.category === "llm" && provider.kind !== "demo" && (
            <TextField
              label="Model"
              required={provider.kind === "openai_compatible"}
              hint={
                provider.kind === "openai_compatible"
                  ? "By the name that your server gives it. You can pick another after the test."
                  : "Left empty, a good one is chosen. You can pick another after the test."
              }
              fault={fault("model")}
              maxLength={200}
              value={fields.model}
              onChange={(text) => set({ model: text })}
            />
          )}
          <SpecialFields provider={provider} fields={fields} fault={fault} set={set} />
        </Form>
      </div>
    </Dialog>
  );
}
