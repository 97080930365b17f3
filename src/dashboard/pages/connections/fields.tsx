import type { faultOf } from "../../api/client.ts";
import type { Connection } from "../../api/shapes.ts";
import { Field, TextArea } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { isProgram } from "./address-field.tsx";
import type { Provider } from "./providers.ts";

/** The fields of a connection in a form, secrets empty. */
export interface Fields {
  label: string;
  credential: string;
  base_url: string;
  model: string;
  /** Ids, in the order in which they are asked. */
  fallback_connection_ids: string[];
  /** One header a line: `Name: value`. */
  headers: string;
  client_id: string;
  client_secret: string;
  issuer: string;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export function fieldsOf(connection: Partial<Connection>): Fields {
  return {
    label: textOf(connection.label),
    credential: "",
    base_url: textOf(connection.base_url),
    model: textOf(connection.model),
    fallback_connection_ids: connection.fallback_connection_ids ?? [],
    headers: "",
    client_id: textOf(connection.config?.["client_id"]),
    client_secret: "",
    issuer: textOf(connection.config?.["issuer"]),
  };
}

/** The changes against `before`, in the form that the API takes. */
export function changesOf(
  now: Fields,
  before: Fields,
  config: Connection["config"],
): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  if (now.label !== before.label) changes["label"] = now.label;
  if (now.credential !== "") changes["credential"] = now.credential;
  for (const name of ["base_url", "model"] as const)
    if (now[name] !== before[name]) changes[name] = now[name] || null;
  const { fallback_connection_ids: ids } = now;
  if (ids.join() !== before.fallback_connection_ids.join()) changes["fallback_connection_ids"] = ids;
  if (now.headers.trim() !== "") changes["headers"] = headersIn(now.headers);
  if (
    ["client_id", "client_secret", "issuer"].some(
      (name) => now[name as keyof Fields] !== before[name as keyof Fields],
    )
  )
    changes["config"] = clientIn(now, config);
  return changes;
}

function headersIn(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split(":");
      return [name.trim(), value.join(":").trim()];
    }),
  );
}

function clientIn({ client_id, client_secret, issuer }: Fields, config: Connection["config"]): object | null {
  const { client_id: _id, issuer: _issuer, ...others } = config ?? {};
  const client = Object.entries({ client_id, client_secret, issuer }).filter(([, value]) => value !== "");
  const all = { ...others, ...Object.fromEntries(client) };
  return Object.keys(all).length === 0 ? null : all;
}

export interface FieldsProps {
  provider: Provider;
  fields: Fields;
  fault: ReturnType<typeof faultOf>;
  set: (change: Partial<Fields>) => void;
}

/** Fields that few servers need, folded. */
export function SpecialFields({ provider, fields, fault, set }: FieldsProps) {
  if (!provider.base_url || isProgram(fields)) return null;
  return (
    <details className="rounded-md border border-line">
      <summary className="px-3 py-2 text-sm font-medium">More, for special servers</summary>
      <div className="grid gap-4 border-t border-line p-3">
        <Field
          label="Headers"
          hint="Sent along with everything, one a line, such as X-Team: blue. Kept encrypted and never shown again; new ones replace all old ones."
          fault={fault("headers")}
        >
          <TextArea
            rows={2}
            className="font-mono text-sm"
            value={fields.headers}
            onChange={(event) => set({ headers: event.target.value })}
          />
        </Field>
        {provider.kind === "mcp" && <ClientFields fields={fields} fault={fault} set={set} />}
      </div>
    </details>
  );
}

function ClientFields({ fields, fault, set }: Omit<FieldsProps, "provider">) {
  return (
    <>
      <p className="text-sm text-soft">
        Only if signing in says that you have to register this server there by hand:
      </p>
      <TextField
        label="Client ID"
        fault={fault("config")}
        value={fields.client_id}
        onChange={(text) => set({ client_id: text })}
      />
      <TextField
        label="Client secret"
        hint="Only if there is one. Left empty, the one that is kept stays."
        type="password"
        autoComplete="off"
        value={fields.client_secret}
        onChange={(text) => set({ client_secret: text })}
      />
      <TextField
        label="Where it is registered"
        hint="The address of the sign-in server that the secret belongs to."
        type="url"
        value={fields.issuer}
        onChange={(text) => set({ issuer: text })}
      />
    </>
  );
}
