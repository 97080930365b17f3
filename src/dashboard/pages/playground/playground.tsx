import { useQuery } from "@tanstack/react-query";
import { Paperclip, X } from "lucide-react";
import { type FormEvent, useRef, useState } from "react";
import { useChange } from "../../api/changes.ts";
import { faultOf, get, post } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { RoutingResult } from "../../api/shapes.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Field, Select, TextArea } from "../../ui/field.tsx";
import { Files, sizeOf } from "../../ui/files.tsx";
import { ModelText } from "../../ui/model-text.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card, Empty, Page } from "../../ui/page.tsx";
import { Spinner } from "../../ui/spinner.tsx";
import { Steps } from "../activity/steps.tsx";
import { InstructionField } from "./instruction-field.tsx";

const POLL_MS = 1_000;

interface Input {
  instruction: string;
  content: string;
  inbox_id: string;
  files: File[];
}

/** The routing call, tried by hand: it does what a mail or a script would, and costs what they cost. */
export function Playground() {
  const { data: inboxes = [] } = useQuery(inboxList);
  const [input, setInput] = useState<Input>({ instruction: "", content: "", inbox_id: "", files: [] });
  const [message_id, setMessageId] = useState<string>();
  const inbox_id = input.inbox_id || inboxes[0]?.id || "";
  const start = useChange<void, RoutingResult>({
    run: async () => post<RoutingResult>("/v1/messages", { ...(await bodyOf(input, inbox_id)), async: true }),
    touches: [["messages"], ["me"]],
    done: (result) => setMessageId(result.message_id),
  });
  const { data: result } = useQuery({
    queryKey: ["routing", message_id],
    queryFn: ({ signal }) => get<RoutingResult>(`/v1/messages/${message_id}`, signal),
    enabled: message_id !== undefined,
    refetchInterval: ({ state }) => (state.data?.status === "processing" || !state.data ? POLL_MS : false),
  });
  const set = (change: Partial<Input>): void => setInput((before) => ({ ...before, ...change }));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setMessageId(undefined);
    start.mutate();
  };
  const running =
    start.isPending || (message_id !== undefined && (!result || result.status === "processing"));
  const fault = faultOf(start.error);
  return (
    <Page
      title="Playground"
      intro="Try an instruction on a text or a file. It costs a credit, as a mail does."
    >
      <div className="grid gap-4 lg:grid-cols-2">
        <form onSubmit={submit} className="grid content-start gap-4">
          <Card>
            <div className="grid gap-4">
              {inboxes.length > 1 && (
                <Field label="Inbox" fault={fault("inbox_id")}>
                  <Select value={inbox_id} onChange={(event) => set({ inbox_id: event.target.value })}>
                    {inboxes.map(({ id, label, address }) => (
                      <option key={id} value={id}>
                        {label || address}
                      </option>
                    ))}
                  </Select>
                </Field>
              )}
              <InstructionField
                value={input.instruction}
                fault={fault("instruction")}
                onChange={(instruction) => set({ instruction })}
              />
              <Field
                label="Text to work on"
                hint="It is read, and nothing it says is obeyed."
                fault={fault("content")}
              >
                <TextArea
                  rows={8}
                  value={input.content}
                  onChange={(event) => set({ content: event.target.value })}
                />
              </Field>
              <Attach files={input.files} onFiles={(files) => set({ files })} />
              <Fault error={start.error} />
              <div>
                <Button look="main" type="submit" busy={running} disabled={inboxes.length === 0}>
                  Run it
                </Button>
              </div>
            </div>
          </Card>
          <Curl input={input} inbox_id={inbox_id} />
        </form>
        <Card title="Result">
          <div aria-live="polite" className="grid gap-4">
            {!start.isPending && message_id === undefined && <Empty title="Nothing run yet" />}
            {running && (
              <p className="flex items-center gap-2 text-soft">
                <Spinner /> Working on it…
              </p>
            )}
            {result && <Outcome result={result} />}
          </div>
        </Card>
      </div>
    </Page>
  );
}

function Outcome({ result }: { result: RoutingResult }) {
  return (
    <>
      <Steps steps={result.steps} />
      {result.error && <Notice look="bad">{result.error}</Notice>}
      {result.result && <ModelText text={result.result} />}
      <Files files={result.attachments} />
      {result.status !== "processing" && (
        <p className="text-sm text-soft">
          {result.credits.charged} charged, {result.credits.remaining} credits left
          {result.usage && `, ${result.usage.input_tokens + result.usage.output_tokens} tokens`}.
        </p>
      )}
    </>
  );
}

function Attach({ files, onFiles }: { files: File[]; onFiles: (files: File[]) => void }) {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <div className="grid justify-items-start gap-2">
      <Button icon={<Paperclip />} onClick={() => chooser.current?.click()}>
        Add a file
      </Button>
      <input
        ref={chooser}
        type="file"
        aria-label="Files to work on"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...files, ...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      {files.map((file) => (
        <span
          key={`${file.name} ${file.lastModified}`}
          className="flex max-w-full items-center gap-1 text-sm"
        >
          <span className="truncate">{file.name}</span>
          <span className="text-soft">{sizeOf(file.size)}</span>
          <IconButton
            label={`Leave out ${file.name}`}
            onClick={() => onFiles(files.filter((other) => other !== file))}
          >
            <X />
          </IconButton>
        </span>
      ))}
    </div>
  );
}

async function bodyOf({ instruction, content, files }: Input, inbox_id: string): Promise<object> {
  const attachments = await Promise.all(
    files.map(async (file) => ({
      filename: file.name,
      content_type: file.type || "application/octet-stream",
      data: base64Of(new Uint8Array(await file.arrayBuffer())),
    })),
  );
  return {
    instruction,
    ...(inbox_id ? { inbox_id } : {}),
    ...(content ? { content } : {}),
    ...(attachments.length > 0 ? { attachments } : {}),
  };
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  const step = 0x8000;
  for (let at = 0; at < bytes.length; at += step)
    text += String.fromCharCode(...bytes.subarray(at, at + step));
  return btoa(text);
}

/** The same call for a script. */
function Curl({ input, inbox_id }: { input: Input; inbox_id: string }) {
  const body = {
    instruction: input.instruction || "Summarise this",
    ...(inbox_id ? { inbox_id } : {}),
    ...(input.content ? { content: input.content } : {}),
  };
  const json = JSON.stringify(body, null, 2).replaceAll("'", String.raw`'\''`);
  const text = [
    `curl ${location.origin}/v1/messages \\`,
    `  -H "X-API-Key: $MAILWRIGHT_KEY" -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join("\n");
  return (
    <details className="rounded-xl border border-line bg-card">
      <summary className="px-4 py-3 font-medium">The same by curl</summary>
      <div className="flex items-start gap-2 border-t border-line p-4">
        <pre className="min-w-0 flex-1 overflow-x-auto font-mono text-sm">{text}</pre>
        <CopyButton text={text} />
      </div>
    </details>
  );
}
