import { Upload } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { get, post, remove } from "../../api/client.ts";
import { contextList } from "../../api/lists.ts";
import type { Context } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select } from "../../ui/field.tsx";
import { FormFrame } from "../../ui/form-faults.tsx";
import { Notice } from "../../ui/notice.tsx";
import { useToast } from "../../ui/toast.tsx";
import { ContextScope } from "./context-scope.tsx";
import { KINDS, NEW_CONTEXT } from "./kinds.ts";

export function UploadButton({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={<Upload />} onClick={() => input.current?.click()}>
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

type Choice = Pick<Context, "kind" | "inbox_ids">;

interface UploadDialogProps {
  files: File[];
  busy: boolean;
  onUpload: (chosen: Choice & { files: File[] }) => void;
  onClose: () => void;
}

/** Asks which inboxes files are for, and begins as a new context does: nobody but the account's own people gets it unasked. */
export function UploadDialog({ files, busy, onUpload, onClose }: UploadDialogProps) {
  const [kind, setKind] = useState<Context["kind"]>(NEW_CONTEXT.kind);
  const [inbox_ids, setInboxes] = useState<Context["inbox_ids"]>(NEW_CONTEXT.inbox_ids);
  const texts = files.filter(mayBeText);
  const others = files.filter((file) => !mayBeText(file)).map(({ name }) => name);
  const one = texts.length === 1;
  return (
    <Dialog
      title={one ? `Make a context of ${texts[0]?.name}` : `Make ${texts.length} contexts`}
      onClose={onClose}
    >
      <FormFrame
        error={null}
        onSubmit={() => onUpload({ kind, inbox_ids, files: texts })}
        className="grid gap-4"
      >
        {others.length > 0 && (
          <Notice look="warn">Left out, as a context is a text: {others.join(", ")}.</Notice>
        )}
        <ContextScope inbox_ids={inbox_ids} fault={undefined} onChange={setInboxes} />
        <Field label="Used" hint={KINDS[kind].hint}>
          <Select value={kind} onChange={(event) => setKind(event.target.value as Context["kind"])}>
            {(["instruction", "knowledge"] as const).map((name) => (
              <option key={name} value={name}>
                {KINDS[name].word}
              </option>
            ))}
          </Select>
        </Field>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="main"
            type="submit"
            busy={busy}
            disabled={texts.length === 0 || inbox_ids?.length === 0}
          >
            {one ? "Make the context" : "Make the contexts"}
          </Button>
        </div>
      </FormFrame>
    </Dialog>
  );
}

/** Browsers tell the kind of a file by its name; a name that says nothing may be that of a text. */
function mayBeText({ type }: File): boolean {
  return type === "" || type === "application/json" || type.startsWith("text/");
}

interface Uploaded {
  made: Context[];
  refused: { name: string; error: unknown }[];
}

/** Uploads files by one call each, so that a fault of one does not keep the others from being taken. */
async function uploadAll({ files, kind, inbox_ids }: Choice & { files: File[] }): Promise<Uploaded> {
  const uploaded: Uploaded = { made: [], refused: [] };
  for (const file of files) {
    const form = new FormData();
    form.set("file", file);
    form.set("kind", kind);
    for (const id of inbox_ids ?? []) form.append("inbox_ids", id);
    try {
      uploaded.made.push(await post<Context>("/contexts/upload", form));
    } catch (error) {
      uploaded.refused.push({ name: file.name, error });
    }
  }
  return uploaded;
}

/** Takes files that are chosen or dropped; `files` are those that are asked about. */
export function useUpload() {
  const [over, setOver] = useState(false);
  const [files, setFiles] = useState<File[]>([]);
  const say = useToast();
  const touches = [contextList.queryKey];
  const back = useChange<Context[]>({
    run: async (made) => {
      for (const one of made) refuseChanged(await get<Context>(`/contexts/${one.id}`), one, ["version"]);
      await Promise.all(made.map(({ id }) => remove(`/contexts/${id}`)));
    },
    touches,
  });
  const upload = useChange<Choice & { files: File[] }, Uploaded>({
    run: uploadAll,
    touches,
    done: ({ made }) => {
      setFiles([]);
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
      setFiles([...event.dataTransfer.files]);
    },
  };
  return { upload, files, setFiles, drop, over };
}
