/**
 * What a model wrote. Shown as the text it is: no picture is loaded and nothing in it can be clicked, because
 * a model that was talked into it would put the secret of a mail into an address.
 */
export function ModelText({ text }: { text: string }) {
  return <div className="max-w-prose text-[0.9375rem] whitespace-pre-wrap wrap-anywhere">{text}</div>;
}
