import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { FieldFault } from "../../api/client.ts";
import { connectionList } from "../../api/lists.ts";
import { Field, Select } from "../../ui/field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { ModelOption } from "./model-select.tsx";

interface OtherModelProps {
  connection_id: string;
  model: string;
  fault: (name: "connection_id" | "model") => FieldFault | undefined;
  onConnection: (connection_id: string) => void;
  onModel: (model: string) => void;
}

/** The choice of `OtherModel` in a form of its own. `asked`: the members of a body that say it. */
export function useOtherModel() {
  const [connection_id, onConnection] = useState("");
  const [model, onModel] = useState("");
  const asked = {
    ...(connection_id === "" ? {} : { connection_id }),
    ...(model.trim() === "" ? {} : { model: model.trim() }),
  };
  return { asked, fields: { connection_id, model, onConnection, onModel } };
}

/** A choice of another model than that of the inbox, by its connection, its name there, or both; empty for that of the inbox. */
export function OtherModel({ connection_id, model, fault, onConnection, onModel }: OtherModelProps) {
  const { data: connections = [] } = useQuery(connectionList);
  return (
    <>
      <Field label="Model" fault={fault("connection_id")}>
        <Select value={connection_id} onChange={(event) => onConnection(event.target.value)}>
          <option value="">That of the inbox</option>
          {connections
            .filter(({ category }) => category === "llm")
            .map((connection) => (
              <ModelOption key={connection.id} connection={connection} />
            ))}
        </Select>
      </Field>
      <TextField
        label="Name of another model there"
        maxLength={200}
        fault={fault("model")}
        value={model}
        onChange={onModel}
      />
    </>
  );
}
