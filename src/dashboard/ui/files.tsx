import { Paperclip } from "lucide-react";
import type { Attachment } from "../api/shapes.ts";

const UNITS = ["B", "KB", "MB", "GB"];

export function Files({ files }: { files: Attachment[] }) {
  if (files.length === 0) return null;
  return (
    <ul className="flex flex-wrap gap-2">
      {files.map(({ id, filename, size, url, purged, lost }) => (
        <li
          key={id}
          className="inline-flex max-w-full items-center gap-2 rounded-md border border-line bg-card px-2 py-1 text-sm"
        >
          <Paperclip aria-hidden className="size-4 shrink-0 text-soft" />
          {purged || lost ? (
            <span className="truncate text-soft">
              {filename} ({purged ? "erased" : "missing on the server's disk"})
            </span>
          ) : (
            <a href={url} download className="truncate text-accent underline">
              {filename}
            </a>
          )}
          <span className="text-soft">{sizeOf(size)}</span>
        </li>
      ))}
    </ul>
  );
}

export function sizeOf(bytes: number): string {
  const step = bytes === 0 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(1_024)));
  const value = bytes / 1_024 ** step;
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[step]}`;
}
