import { Markdown } from "./markdown.tsx";

/**
 * What a model wrote. No picture is loaded and nothing in it can be clicked: a model that was talked into it
 * would put the secret of a mail into an address.
 */
export function ModelText({ text }: { text: string }) {
  return (
    <div className="max-w-prose">
      <Markdown text={text} />
      {text.includes("](") && (
        <p className="mt-3 text-sm text-soft">
          Links cannot be clicked here: a model may have written what it read into an address.
        </p>
      )}
    </div>
  );
}
