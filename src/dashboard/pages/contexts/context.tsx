import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, get, patch, post } from "../../api/client.ts";
import { contextList, inboxList } from "../../api/lists.ts";
import type { Context as ContextRow } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Field, Select, TextArea, Toggle } from "../../ui/field.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToast } from "../../ui/toast.tsx";
import { KINDS } from "./contexts.tsx";

const NEW: Draft = { title: "", body: "", kind: "instruction", enabled: true };
type Draft = Pick<ContextRow, "title" | "body" | "kind" | "enabled"> & { slug?: string };

export function Context() {
  const { context_id = "new" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({
    queryKey: ["contexts", context_id],
    queryFn: ({ signal }) => get<ContextRow>(`/contexts/${context_id}`, signal),
    enabled: context_id !== "new",
  });
  if (context_id === "new") return <Editor draft={NEW} />;
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  return data ? <Editor key={data.id} draft={data} saved={data} /> : <Loading what="the context" />;
}

function Editor({ draft: start, saved }: { draft: Draft; saved?: ContextRow }) {
  const [draft, setDraft] = useState<Draft>(start);
  const navigate = useNavigate();
  const say = useToast();
  const { title, body, kind, slug, enabled } = draft;
  const save = useChange<void, ContextRow>({
    run: () => {
      const input = { title, body, kind, enabled, ...(slug ? { slug } : {}) };
      return saved ? patch<ContextRow>(`/contexts/${saved.id}`, input) : post<ContextRow>("/contexts", input);
    },
    touches: [contextList.queryKey],
    done: ({ id }) => {
      say("Saved.");
      void navigate({ to: "/contexts/$context_id", params: { context_id: id }, replace: true });
    },
  });
  const set = (change: Partial<Draft>): void => setDraft((before) => ({ ...before, ...change }));
  const fault = faultOf(save.error);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Page title={saved ? saved.title : "New context"} actions={saved && <Delete context={saved} />}>
      <form onSubmit={submit} className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_18rem]">
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
            <Body body={body} fault={fault("body")} onChange={(text) => set({ body: text })} />
          </div>
        </Card>
        <div className="grid content-start gap-4">
          <Card>
            <div className="grid gap-4">
              <Field label="When it is used" hint={KINDS[kind].hint} fault={fault("kind")}>
                <Select
                  value={kind}
                  onChange={(event) => set({ kind: event.target.value as ContextRow["kind"] })}
                >
                  {Object.entries(KINDS).map(([id, { word }]) => (
                    <option key={id} value={id}>
                      {word}
                    </option>
                  ))}
                </Select>
              </Field>
              <TextField
                label="Short name"
                hint={`Written as ${kind === "command" ? "$" : "+"}${slug ?? "name"} in an instruction. Left empty, it is made from the title.`}
                fault={fault("slug")}
                maxLength={64}
                value={slug ?? ""}
                onChange={(text) => set({ slug: text })}
              />
              <Toggle label="In use" checked={enabled} onChange={(on) => set({ enabled: on })} />
              <Fault error={save.error} />
              <Button look="main" type="submit" busy={save.isPending}>
                Save
              </Button>
            </div>
          </Card>
          {saved && <WhereUsed context={saved} />}
        </div>
      </form>
    </Page>
  );
}

interface BodyProps {
  body: string;
  fault: string | undefined;
  onChange: (body: string) => void;
}

function Body({ body, fault, onChange }: BodyProps) {
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
          <Markdown text={body} />
        </div>
      )}
    </Tabs>
  );
}

function WhereUsed({ context }: { context: ContextRow }) {
  const { data: inboxes = [] } = useQuery(inboxList);
  const users = inboxes.filter(({ context_ids }) => context_ids === null || context_ids.includes(context.id));
  return (
    <Card title="Where it is used">
      {users.length === 0 ? (
        <p className="text-soft">In no inbox yet.</p>
      ) : (
        <ul className="grid gap-1">
          {users.map(({ id, label, address }) => (
            <li key={id} className="truncate">
              {label || address}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Delete({ context }: { context: ContextRow }) {
  const navigate = useNavigate();
  const say = useToast();
  const again = useChange<void, ContextRow>({
    run: () => {
      const { title, body, kind, slug, enabled } = context;
      return post<ContextRow>("/contexts", { title, body, kind, slug, enabled });
    },
    touches: [contextList.queryKey],
  });
  return (
    <DeleteButton
      title="Delete this context?"
      act="Delete the context"
      path={`/contexts/${context.id}`}
      touches={[contextList.queryKey]}
      done={() => {
        say("The context is deleted.", () => again.mutate());
        void navigate({ to: "/contexts" });
      }}
    >
      <p>Your inboxes will no longer know “{context.title}”.</p>
    </DeleteButton>
  );
}
