import { Check, Copy as CopyIcon } from "lucide-react";
import { Fragment, useEffect, useState } from "react";
import { IconButton } from "./button.tsx";

const SHOWN_MS = 1_500;

/** Puts a text on the clipboard and says that it did. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <IconButton label={copied ? "Copied" : label} onClick={() => void copy(text).then(() => setCopied(true))}>
      {copied ? <Check className="text-good" /> : <CopyIcon />}
    </IconButton>
  );
}

/** Over plain HTTP, as in a home network, or unasked, browsers keep the clipboard from pages but for an old way. */
async function copy(text: string): Promise<void> {
  if (!window.isSecureContext) return copyBySelection(text);
  await navigator.clipboard.writeText(text).catch(() => copyBySelection(text));
}

function copyBySelection(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "fixed opacity-0";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** An address or a path that wraps between its parts, and within one only where that is too long for a line. */
function Breakable({ text }: { text: string }) {
  return [...text.matchAll(/[@./]?[^@./]+|[@./]/g)].map(({ 0: part, index }) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}

/** A value to be read and taken along, such as an address or a key. */
export function Copyable({ text, label }: { text: string; label?: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-back pl-2">
      <code className="min-w-0 py-1 font-mono text-sm wrap-anywhere">
        <Breakable text={text} />
      </code>
      <CopyButton text={text} {...(label ? { label } : {})} />
    </span>
  );
}
