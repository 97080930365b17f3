import { type ReactNode, useEffect } from "react";

interface DoorstepProps {
  title: string;
  heading: string;
  words: string;
  children: ReactNode;
}

/** The frame of pages for somebody who is not signed in. */
export function Doorstep({ title, heading, words, children }: DoorstepProps) {
  useEffect(() => {
    document.title = `${title} · Mailwright`;
  }, [title]);
  return (
    <main className="grid min-h-dvh content-center justify-items-center gap-6 px-4 py-10">
      <div className="grid justify-items-center gap-2 text-center">
        <img src="/app/icon.svg" alt="" className="size-12" />
        <h1 className="text-2xl font-semibold">{heading}</h1>
        <p className="max-w-md text-soft">{words}</p>
      </div>
      <div className="grid w-full max-w-sm gap-4">{children}</div>
    </main>
  );
}
