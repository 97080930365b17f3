import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { contextList } from "../../api/lists.ts";
import type { Context } from "../../api/shapes.ts";
import { useMe } from "../../api/session.ts";
import { Allowance } from "../../ui/allowance.tsx";
import { Badge } from "../../ui/badge.tsx";
import { BUTTON } from "../../ui/button.tsx";
import { classes } from "../../ui/class-names.ts";
import { Fault } from "../../ui/notice.tsx";
import { Empty, Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { scopeWords } from "./context-scope.tsx";
import { KINDS } from "./kinds.ts";
import { UploadButton, UploadDialog, useUpload } from "./upload.tsx";

export function Contexts() {
  const { data: contexts, error, isPending, refetch } = useQuery(contextList);
  const { limits } = useMe();
  const { upload, files, setFiles, drop, over } = useUpload();
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
          <UploadButton onFiles={setFiles} />
          {make}
        </>
      }
    >
      <Fault error={error} retry={() => void refetch()} />
      {files.length > 0 && (
        <UploadDialog
          files={files}
          busy={upload.isPending}
          onUpload={(chosen) => upload.mutate(chosen)}
          onClose={() => setFiles([])}
        />
      )}
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
          <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-card md:grid md:grid-cols-[minmax(0,1fr)_repeat(3,auto)] lg:grid-cols-[minmax(0,1fr)_repeat(4,auto)]">
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

/** Where there is room, the rows share the columns of the list. */
const COLUMNS = "md:col-span-full md:grid md:grid-cols-subgrid";

function Row({ context }: { context: Context }) {
  return (
    <li className={COLUMNS}>
      <Link
        to="/contexts/$context_id"
        params={{ context_id: context.id }}
        className={classes("flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 hover:bg-hover", COLUMNS)}
      >
        <span className="min-w-0 flex-1 basis-48 truncate font-medium">{context.title}</span>
        <span className="text-sm text-soft">
          {context.enabled ? scopeWords(context) : <Badge look="warn">Switched off</Badge>}
        </span>
        <span>
          <Badge>{KINDS[context.kind].word}</Badge>
        </span>
        <code className="min-w-0 truncate font-mono text-sm text-soft md:max-w-48 md:max-lg:hidden">
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
