import { Paperclip, X } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import type { FieldFault } from "../../api/client.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { sizeOf } from "../../ui/files.tsx";
import { FaultOfField } from "../../ui/form-faults.tsx";

const MEGABYTE = 1_024 * 1_024;
const MAX_FILES = 10;
const MAX_FILE_BYTES = 10 * MEGABYTE;
const MAX_ALL_BYTES = 25 * MEGABYTE;

interface AttachProps {
  files: File[];
  fault: FieldFault | undefined;
  onFiles: (files: File[]) => void;
}

/** The files of a call: chosen here, or dropped where `useFileDrop` takes them. */
export function Attach({ files, fault, onFiles }: AttachProps) {
  const chooser = useRef<HTMLInputElement>(null);
  const refusal = refusalOf(files);
  return (
    <div className="grid justify-items-start gap-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Button icon={<Paperclip />} onClick={() => chooser.current?.click()}>
          Add files
        </Button>
        <span className="text-sm text-soft max-sm:hidden">or drop them here</span>
      </div>
      <input
        ref={chooser}
        type="file"
        aria-label="Files to work on"
        multiple
        hidden
        onChange={(event) => {
          onFiles(joined(files, [...(event.target.files ?? [])]));
          event.target.value = "";
        }}
      />
      {files.length > 0 && (
        <ul aria-label="Files" className="grid max-w-full gap-1">
          {files.map((file) => (
            <li key={keyOf(file)} className="flex min-w-0 items-center gap-2 text-sm">
              <span className="truncate">{file.name}</span>
              <span className="whitespace-nowrap text-soft">{sizeOf(file.size)}</span>
              <IconButton
                label={`Leave out ${file.name}`}
                onClick={() => onFiles(files.filter((other) => other !== file))}
              >
                <X />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      {refusal && (
        <p role="alert" className="text-sm text-bad">
          {refusal}
        </p>
      )}
      <FaultOfField fault={fault} />
    </div>
  );
}

/** All files, each once. */
export function joined(files: File[], more: File[]): File[] {
  return [...new Map([...files, ...more].map((file) => [keyOf(file), file])).values()];
}

function keyOf({ name, size, lastModified }: File): string {
  return `${name} ${size} ${lastModified}`;
}

/** Why files cannot be sent, before they are read; undefined if they can. */
export function refusalOf(files: File[]): string | undefined {
  const large = files.find(({ size }) => size > MAX_FILE_BYTES);
  if (large) return `${large.name} is larger than ${sizeOf(MAX_FILE_BYTES)}. Leave it out.`;
  if (files.length > MAX_FILES) return `At most ${MAX_FILES} files go along at once. Leave some out.`;
  const all = files.reduce((sum, { size }) => sum + size, 0);
  return all > MAX_ALL_BYTES
    ? `All files together may have ${sizeOf(MAX_ALL_BYTES)}. Leave some out.`
    : undefined;
}

/** The handlers of an element on which files may be dropped; elsewhere the browser would leave the page for them. */
export function useFileDrop(onFiles: (files: File[]) => void) {
  const [over, setOver] = useState(false);
  const carriesFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer.types.includes("Files");
  return {
    over,
    handlers: {
      onDragOver: (event: DragEvent) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: (event: DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      },
      onDrop: (event: DragEvent) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setOver(false);
        onFiles([...event.dataTransfer.files]);
      },
    },
  };
}
