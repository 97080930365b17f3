import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus, Upload } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post, remove } from "../../api/client.ts";
import { contextList } from "../../api/lists.ts";
import type { Context } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { BUTTON, Button } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";
import { scopeWords } from "./context-scope.tsx";

export const KINDS: Record<Context["kind"], { word: string; hint: string }> = {
  instruction: { word: "Always", hint: "Goes along with every mail and call to its inboxes." },
  knowledge: { word: "When it fits", hint: "Is looked up when a mail is about it, or named as +name." },
  command: {
    word: "Macro",
    hint: "Is called as $name. {{input}} in its text becomes what stands behind $name.",
  },
};

export function Contexts() {
  const { data: contexts, error, isPending, refetch } = useQuery(contextList);
  const { limits } = useMe();
  const { upload, drop, over } = useUpload();
  const make = (
    <Link
      to="/contexts/$context_id"
      params={{ context_id: "new" }}
      className={`${BUTTON} bg-accent text-accent-text`}
    >
      <Plus aria-hidden /> New context
    </Link>
  );
  return (
    <Page
      title="Contexts"
      intro="What your inboxes should know and keep to: how you write, who your customers are, how an invoice is filed."
      actions={
        <>
          <UploadButton busy={upload.isPending} onFiles={(files) => upload.mutate(files)} />
          {make}
        </>
      }
    >
      <Fault error={error} retry={() => void refetch()} />
      {upload.data?.refused.map(({ name, error: why }) => (
        <Fault key={name} about={name} error={why} />
      ))}
      <div
        {...drop}
        className={classes("grid gap-4 rounded-xl", over && "outline-2 outline-dashed outline-accent")}
      >
        {isPending && <Loading what="your contexts" />}
        {contexts?.length === 0 && (
          <Empty title="No context yet" action={make}>
            Write one, or drop a Markdown file here.
          </Empty>
        )}
        {contexts && contexts.length > 0 && (
          <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card">
            {contexts.map((context) => (
              <Row key={context.id} context={context} />
            ))}
          </ul>
        )}
      </div>
      {contexts && (
        <p className="text-sm text-soft">
          <Allowance count={contexts.length} limit={limits.contexts} noun="contexts" /> Markdown files can be
          dropped on the list.
        </p>
      )}
    </Page>
  );
}

function Row({ context }: { context: Context }) {
  return (
    <li>
      <Link
        to="/contexts/$context_id"
        params={{ context_id: context.id }}
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover"
      >
        <span className="min-w-0 flex-1 basis-48 truncate font-medium">{context.title}</span>
        {!context.enabled && <Badge look="warn">Switched off</Badge>}
        <span className="text-sm text-soft">{scopeWords(context)}</span>
        <Badge>{KINDS[context.kind].word}</Badge>
        <code className="min-w-0 truncate font-mono text-sm text-soft">
          {context.kind === "command" ? "$" : "+"}
          {context.slug}
        </code>
        <span className="text-sm text-soft">
          <Time at={context.updated} />
        </span>
      </Link>
    </li>
  );
}

function UploadButton({ busy, onFiles }: { busy: boolean; onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={<Upload />} busy={busy} onClick={() => input.current?.click()}>
        Upload Markdown
      </Button>
      <input
        ref={input}
        type="file"
        aria-label="Markdown files"
        accept=".md,.markdown,.txt,text/markdown,text/plain"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </>
  );
}

interface Uploaded {
  made: Context[];
  refused: { name: string; error: unknown }[];
}

/** Uploads files by one call each, so that a fault of one does not keep the others from being taken. */
async function uploadAll(files: File[]): Promise<Uploaded> {
  const uploaded: Uploaded = { made: [], refused: [] };
  for (const file of files) {
    const form = new FormData();
    form.set("file", file);
    try {
      uploaded.made.push(await post<Context>("/contexts/upload", form));
    } catch (error) {
      uploaded.refused.push({ name: file.name, error });
    }
  }
  return uploaded;
}

/** Takes files that are chosen or dropped. */
function useUpload() {
  const [over, setOver] = useState(false);
  const say = useToast();
  const touches = [contextList.queryKey];
  const back = useChange<Context[]>({
    run: (made) => Promise.all(made.map(({ id }) => remove(`/contexts/${id}`))),
    touches,
  });
  const upload = useChange<File[], Uploaded>({
    run: uploadAll,
    touches,
    done: ({ made }) => {
      if (made.length > 0)
        say(made.length === 1 ? "The file is now a context." : `${made.length} files are now contexts.`, () =>
          back.mutateAsync(made),
        );
    },
  });
  const drop = {
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      if (event.dataTransfer.files.length > 0) upload.mutate([...event.dataTransfer.files]);
    },
  };
  return { upload, drop, over };
}
