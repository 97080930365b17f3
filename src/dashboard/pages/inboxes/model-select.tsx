import { useQuery } from "@tanstack/react-query";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Field, type FieldProps, Select } from "../../ui/field.tsx";
import { isBroken } from "./models.ts";

type ModelSelectProps = Omit<FieldProps, "children" | "label"> & {
  value: string;
  onChange: (connection_id: string) => void;
};

/**
 * The words for the model that the server has for everybody; null where there is none. That is seen only at an inbox that
 * has none of its own.
 */
function useOwnModelWords(): string | null {
  const { data: inboxes = [] } = useQuery(inboxList);
  const without = inboxes.find(({ default_connection_id }) => default_connection_id === null);
  if (!without) return "The server’s own, if it has one";
  return without.routed ? "The server’s own" : null;
}

/** A choice among the account's connections to models; empty for the model that the server has for everybody. */
export function ModelSelect({ value, onChange, ...field }: ModelSelectProps) {
  const { data: connections = [] } = useQuery(connectionList);
  const own_words = useOwnModelWords();
  return (
    <Field label="Model" {...field}>
      <Select value={value} onChange={(event) => onChange(event.target.value)}>
        {(own_words !== null || value === "") && <option value="">{own_words ?? "None yet"}</option>}
        {connections
          .filter(({ category }) => category === "llm")
          .map((connection) => (
            <ModelOption key={connection.id} connection={connection} />
          ))}
      </Select>
    </Field>
  );
}

/** A model among others, with what is known against it. */
export function ModelOption({ connection }: { connection: Connection }) {
  return (
    <option value={connection.id}>
      {connection.label}
      {isBroken(connection) && " (does not work)"}
    </option>
  );
}
