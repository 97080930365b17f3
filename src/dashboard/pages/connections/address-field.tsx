import { queryOptions, useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import type { ToolProgram } from "../../api/shapes.ts";
import { Field, Select } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import type { FieldsProps } from "./fields.tsx";

const programList = queryOptions({
  queryKey: ["programs"],
  queryFn: ({ signal }) => get<ToolProgram[]>("/connections/programs", signal),
});

/** Whether an address names a program on the server's own machine, which needs no key. */
export function isProgram({ base_url }: { base_url: string | null }): boolean {
  return base_url?.startsWith("stdio:") === true;
}

export function AddressField(props: FieldsProps) {
  if (!props.provider.base_url) return null;
  return props.provider.kind === "mcp" ? <Place {...props} /> : <Address {...props} />;
}

function Address({ provider, fields, fault, set }: FieldsProps) {
  return (
    <TextField
      label="Address"
      hint={provider.base_url?.hint}
      fault={fault("base_url")}
      type="url"
      required={provider.base_url?.required}
      placeholder={provider.base_url?.placeholder}
      value={fields.base_url}
      onChange={(text) => set({ base_url: text })}
    />
  );
}

/**
 * The field for the address of a tool server, or for one of the programs that the operator has opened to the account.
 */
function Place(props: FieldsProps) {
  const { fields, fault, set } = props;
  const { data: programs = [], isPending } = useQuery(programList);
  if (isPending) return null;
  if (programs.length === 0) return <Address {...props} />;
  const chosen = programs.find(({ base_url }) => base_url === fields.base_url);
  return (
    <>
      <Field label="Where it runs" fault={chosen && fault("base_url")}>
        <Select
          value={chosen?.base_url ?? ""}
          onChange={(event) => set({ base_url: event.target.value, credential: "", headers: "" })}
        >
          <option value="">At an address</option>
          {programs.map(({ name, base_url }) => (
            <option key={name} value={base_url}>
              On this server: {name}
            </option>
          ))}
        </Select>
      </Field>
      {!chosen && <Address {...props} />}
    </>
  );
}
