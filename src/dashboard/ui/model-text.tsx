import { Markdown } from "./markdown.tsx";

/**
 * What a model wrote. No picture is loaded and nothing in it can be clicked: a model that was talked into it
 * would put the secret of a mail into an address.
 */
export function ModelText({ text }: { text: string }) {
  return (
    <div className="max-w-prose">
      <Markdown text={text} />
    </div>
  );
}
