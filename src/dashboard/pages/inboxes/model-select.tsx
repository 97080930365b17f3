import { useQuery } from "@tanstack/react-query";
import { connectionList } from "../../api/lists.ts";
import { Field, type FieldProps, Select } from "../../ui/field.tsx";

type ModelSelectProps = Omit<FieldProps, "children" | "label"> & {
  value: string;
  onChange: (connection_id: string) => void;
};

/** One of the account's models by its connection; empty for the one that the server has for everybody. */
export function ModelSelect({ value, onChange, ...field }: ModelSelectProps) {
  const { data: connections = [] } = useQuery(connectionList);
  return (
    <Field label="Model" {...field}>
      <Select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">The server’s own, if it has one</option>
        {connections
          .filter(({ category }) => category === "llm")
          .map(({ id, label, status }) => (
            <option key={id} value={id}>
              {label}
              {status === "error" && " (does not work)"}
            </option>
          ))}
      </Select>
    </Field>
  );
}
