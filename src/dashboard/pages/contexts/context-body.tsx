import { useState } from "react";
import type { FieldFault } from "../../api/client.ts";
import { Field, TextArea } from "../../ui/field.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Tabs } from "../../ui/tabs.tsx";

interface BodyProps {
  body: string;
  fault: FieldFault | undefined;
  onChange: (body: string) => void;
}

/** The text of a context, to be edited or as it looks. */
export function ContextBody({ body, fault, onChange }: BodyProps) {
  const [view, setView] = useState<"write" | "preview">("write");
  return (
    <Tabs
      label="Text"
      tabs={[
        { id: "write", title: "Write" },
        { id: "preview", title: "Preview" },
      ]}
      chosen={view}
      onChoose={setView}
    >
      {view === "write" ? (
        <Field label="Text in Markdown" fault={fault}>
          <TextArea
            required
            rows={20}
            className="font-mono text-sm"
            value={body}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
      ) : (
        <div className="min-h-64">
          {body.trim() === "" ? (
            <p className="text-soft">Nothing is written yet.</p>
          ) : (
            <Markdown text={body} />
          )}
        </div>
      )}
    </Tabs>
  );
}
