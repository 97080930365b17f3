import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { type FieldFault, faultOf, get, isMissing, patch, post } from "../../api/client.ts";
import { contextList, inboxList } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import type { Context as ContextRow } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Conflict } from "../../ui/conflict.tsx";
import { NotFound } from "../../shell/not-found.tsx";
import { PageFault } from "../../shell/page-fault.tsx";
import { Checkbox, Field, Select } from "../../ui/field.tsx";
import { FormFrame, RestOfFaults } from "../../ui/form-faults.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";
import { Unsaved } from "../../ui/unsaved.tsx";
import { ContextBody } from "./context-body.tsx";
import { ContextScope } from "./context-scope.tsx";
import { EarlierVersions } from "./earlier-versions.tsx";
import { DeleteContext, WhereUsed } from "./context-uses.tsx";
import { KINDS, NEW_CONTEXT } from "./kinds.ts";

const NEW: Draft = { title: "", body: "", enabled: true, ...NEW_CONTEXT };
type Draft = Pick<ContextRow, "title" | "body" | "kind" | "enabled" | "inbox_ids"> &
  Partial<Pick<ContextRow, "slug" | "version">>;

export function Context() {
  const { context_id = "new" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({
    queryKey: ["context", context_id],
    queryFn: ({ signal }) => get<ContextRow>(`/contexts/${context_id}`, signal),
    enabled: context_id !== "new",
  });
  if (context_id === "new") return <Editor draft={NEW} />;
  if (isMissing(error)) return <NotFound />;
  if (error) return <PageFault error={error} reset={() => void refetch()} />;
  return data ? <Editor key={data.id} draft={data} saved={data} /> : <Loading what="the context" />;
}

function Editor({ draft: start, saved }: { draft: Draft; saved?: ContextRow }) {
  // What was read when the changes began: it may be another text by now.
  const [read, setRead] = useState(start);
  const [changes, setChanges] = useState<Partial<Draft>>({});
  const touched = Object.keys(changes).length > 0;
  const navigate = useNavigate();
  const say = useToast();
  const { title, body, kind, slug, enabled, inbox_ids } = { ...read, ...changes };
  const startAnew = (now: ContextRow): void => {
    setChanges({});
    setRead(now);
  };
  const save = useChange<number | undefined, ContextRow>({
    run: (version) => {
      // An empty short name is left to the server.
      const input = {
        ...(saved ? { ...changes, version } : { ...read, ...changes }),
        slug: slug || undefined,
      };
      return saved ? patch<ContextRow>(`/contexts/${saved.id}`, input) : post<ContextRow>("/contexts", input);
    },
    touches: [contextList.queryKey, inboxList.queryKey, ["context", saved?.id]],
    done: (now) => {
      const { id } = now;
      startAnew(now);
      say("Saved.");
      if (!saved)
        void navigate({
          to: "/contexts/$context_id",
          params: { context_id: id },
          replace: true,
          ignoreBlocker: true,
        });
    },
  });
  const set = (change: Partial<Draft>): void => {
    setChanges((before) => ({ ...before, ...change }));
  };
  const fault = faultOf(save.error);
  return (
    <Page title={saved ? saved.title : "New context"} actions={saved && <DeleteContext context={saved} />}>
      <FormFrame
        error={save.error}
        onSubmit={() => save.mutate(read.version)}
        className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_18rem]"
      >
        <Card>
          <div className="grid gap-4">
            <TextField
              label="Title"
              fault={fault("title")}
              required
              maxLength={200}
              value={title}
              onChange={(text) => set({ title: text })}
            />
            <ContextBody body={body} fault={fault("body")} onChange={(text) => set({ body: text })} />
          </div>
        </Card>
        <div className="grid content-start gap-4">
          <Card>
            <div className="grid gap-4">
              <KindField kind={kind} fault={fault("kind")} onChange={(next) => set({ kind: next })} />
              <TextField
                label="Short name"
                hint={`Written as ${kind === "command" ? "$" : "+"}${slug || "name"} in an instruction. Left empty, it is made from the title.`}
                fault={fault("slug")}
                maxLength={64}
                value={slug ?? ""}
                onChange={(text) => set({ slug: text })}
              />
              <ContextScope
                inbox_ids={inbox_ids}
                fault={fault("inbox_ids")}
                onChange={(ids) => set({ inbox_ids: ids })}
              />
              <InUse enabled={enabled} onChange={(on) => set({ enabled: on })} />
              <RestOfFaults />
              <Conflict error={save.error} busy={save.isPending} onKeep={() => save.mutate(undefined)}>
                What you wrote is still here. You can also keep yours: the other text then goes to the earlier
                versions.
              </Conflict>
              <Button look="main" type="submit" busy={save.isPending}>
                Save
              </Button>
            </div>
          </Card>
          {saved && <WhereUsed context={saved} />}
          {saved && <EarlierVersions context={saved} unsaved={touched} onRestored={startAnew} />}
        </div>
      </FormFrame>
      <Unsaved changed={touched} />
    </Page>
  );
}

interface KindFieldProps {
  kind: Draft["kind"];
  fault: FieldFault | undefined;
  onChange: (kind: Draft["kind"]) => void;
}

function KindField({ kind, fault, onChange }: KindFieldProps) {
  const { plan } = useMe();
  return (
    <Field
      label="When it is used"
      hint={`${KINDS[kind].hint}${kind === "command" && plan === "free" ? " Your account has no macros." : ""}`}
      fault={fault}
    >
      <Select value={kind} onChange={(event) => onChange(event.target.value as Draft["kind"])}>
        {Object.entries(KINDS).map(([id, { word }]) => (
          <option key={id} value={id}>
            {word}
          </option>
        ))}
      </Select>
    </Field>
  );
}

function InUse({ enabled, onChange }: { enabled: boolean; onChange: (on: boolean) => void }) {
  return <Checkbox label="In use" checked={enabled} onChange={(event) => onChange(event.target.checked)} />;
}
