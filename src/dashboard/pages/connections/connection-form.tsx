import { faultOf } from "../../api/client.ts";
import type { Connection } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Fault } from "../../ui/notice.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { AddressField, isProgram } from "./address-field.tsx";
import { FailedTest } from "./failed-test.tsx";
import { SpecialFields } from "./fields.tsx";
import { ModelField } from "./model-field.tsx";
import { connectWords, type Provider } from "./providers.ts";
import { PullModel, USUAL_OLLAMA_MODEL } from "./pull-model.tsx";
import { SignInThere } from "./sign-in-there.tsx";
import { toolServerName } from "../../../resources/connections/tool-server-name.ts";
import { shortTarget } from "./short-target.ts";
import { useConnecting } from "./use-connecting.ts";

interface FormProps {
  provider: Provider;
  onClose: () => void;
  /** Called with the new connection, instead of opening its page, which tests it. */
  onMade?: (connection: Connection) => void;
}

const TOOL_EXAMPLE = "Calendar";

/** The name in instructions: a tool server has its own, a service always the same. */
function calledBy({ kind, category }: Provider, label: string): string {
  if (category !== "mcp") return shortTarget(kind);
  return shortTarget(`mcp:${toolServerName(label.trim() || TOOL_EXAMPLE)}`);
}

interface PartProps {
  provider: Provider;
  now: ReturnType<typeof useConnecting>;
}

/** Makes a connection of one kind, once a test of what was entered has gone well. */
export function ConnectionForm({ provider, onClose, onMade }: FormProps) {
  const now = useConnecting(provider, onMade);
  const { fields, set, create, connect } = now;
  const { kind, key, category, name, words } = provider;
  const fault = faultOf(create.error);
  return (
    <Dialog title={connectWords(provider)} onClose={onClose}>
      <div className="grid gap-4">
        <p className="text-soft">{words}</p>
        {category === "integration" && (
          <div className="grid gap-3 border-b border-line pb-4">
            <SignInThere
              path={`/integrations/${kind}/connect`}
              name={name}
              look="main"
              token={provider.token}
            />
            <p className="text-sm text-soft">Or use a token that you have made there:</p>
          </div>
        )}
        <Form
          change={{ mutate: () => connect(fields), isPending: create.isPending, error: create.error }}
          act="Connect and test"
          onCancel={onClose}
        >
          <TextField
            label="Name"
            hint={category === "llm" ? undefined : `You will call it @${calledBy(provider, fields.label)}.`}
            fault={fault("label")}
            required={category === "mcp"}
            placeholder={category === "mcp" ? TOOL_EXAMPLE : undefined}
            maxLength={100}
            value={fields.label}
            onChange={(text) => set({ label: text })}
          />
          <AddressField provider={provider} fields={fields} fault={fault} set={set} />
          {key && !isProgram(fields) && (
            <TextField
              label="Key"
              hint={key.hint}
              fault={fault("credential")}
              type="password"
              autoComplete="off"
              required={key.required}
              value={fields.credential}
              onChange={(text) => set({ credential: text })}
            />
          )}
          {category === "llm" && kind !== "demo" && <ModelPart provider={provider} now={now} />}
          <SpecialFields provider={provider} fields={fields} fault={fault} set={set} />
          <Failed provider={provider} now={now} />
        </Form>
      </div>
    </Dialog>
  );
}

/** The field for the name of a model, which is chosen from a list once that has been asked for. */
function ModelPart({ provider: { kind }, now: { fields, set, verdict, create, look } }: PartProps) {
  const models = verdict?.models ?? [];
  const required = kind === "openai_compatible";
  return (
    <div className="grid gap-2">
      <ModelField
        model={fields.model}
        models={models}
        required={required}
        hint={required ? "By the name that your server gives it." : "Left empty, a good one is chosen."}
        fault={faultOf(create.error)("model")}
        onChange={(text) => set({ model: text })}
      />
      {models.length === 0 && (
        <div>
          <Button busy={look.isPending} disabled={create.isPending} onClick={() => look.mutate()}>
            Show its models
          </Button>
        </div>
      )}
      <Fault error={look.error} />
    </div>
  );
}

/** Shown after a failed test. Nothing has been made, and what was entered can still be corrected. */
function Failed({ provider: { kind }, now }: PartProps) {
  const { fields, set, verdict, body, create, look, connect } = now;
  if (!verdict?.error) return null;
  const busy = create.isPending || look.isPending;
  const move = (base_url: string): void => {
    set({ base_url });
    connect({ ...fields, base_url });
  };
  return (
    <FailedTest verdict={verdict} busy={busy} onMove={move}>
      {kind === "ollama" && verdict.error.code === "model_not_found" && (
        <PullModel
          path="/connections/pull"
          body={body}
          model={fields.model || USUAL_OLLAMA_MODEL}
          onDone={() => connect(fields)}
        />
      )}
      <Button disabled={busy} onClick={() => connect(fields, true)}>
        Connect it all the same
      </Button>
    </FailedTest>
  );
}
