import { ArrowUp, Radio, WifiOff } from "lucide-react";
import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from "react";
import { type GrowingList, useGrowingList } from "../api/growing-list.ts";
import { LOOK_SECONDS, useIsLive } from "../api/live.ts";
import { Button } from "./button.tsx";
import { classes } from "./class-names.ts";
import { LongList } from "./long-list.tsx";
import { More } from "./more.tsx";
import { Fault } from "./notice.tsx";
import { Loading } from "./spinner.tsx";

/** Pages in a row without a find that are gone through unasked. */
const MAX_EMPTY_PAGES = 25;
/** Between two words on news, to people who are read to. */
const WORD_MS = 10_000;

interface GrowingProps<T> {
  list: GrowingList<T>;
  /** Such as "Messages". */
  label: string;
  /** Such as "3 new messages". */
  wordsFor: (new_ones: number) => string;
  empty: ReactNode;
  keyOf: (item: T) => string;
  row: (item: T) => ReactNode;
  /** Sets `--row`, how high each row is. */
  className: string;
}

/** A list that is live: news show at its top, or wait behind a button for who reads further down. */
export function Growing<T>({ list, label, wordsFor, empty, keyOf, row, className }: GrowingProps<T>) {
  const frame = useRef<HTMLUListElement>(null);
  const growing = useGrowingList(list, () => (frame.current?.getBoundingClientRect().top ?? 0) >= 0);
  const { pages, head, items, unseen } = growing;
  const showUnseen = async (): Promise<void> => {
    await growing.showUnseen();
    scrollTo({ top: 0 });
    frame.current?.focus({ preventScroll: true });
  };
  return (
    <div
      className={classes("grid gap-3", pages.isPlaceholderData && "opacity-60")}
      aria-busy={pages.isPlaceholderData || undefined}
    >
      <Word came={growing.came} wordsFor={wordsFor} />
      {pages.data ? (
        <Fault error={head.error} retry={() => void head.refetch()} />
      ) : (
        <Fault error={pages.error} retry={() => void pages.refetch()} />
      )}
      {pages.isLoading && <Loading what={`the ${label.toLowerCase()}`} />}
      {pages.data && items.length === 0 && !pages.hasNextPage && empty}
      {unseen.length > 0 && (
        <div className="sticky top-16 z-10 -mb-3 flex h-0 justify-center md:top-3">
          <Button look="main" className="h-9 shadow-lg" icon={<ArrowUp />} onClick={() => void showUnseen()}>
            {wordsFor(unseen.length)}
          </Button>
        </div>
      )}
      {items.length > 0 && (
        <LongList ref={frame} label={label} items={items} keyOf={keyOf} row={row} className={className} />
      )}
      <Older pages={pages} empty={growing.emptyPages} />
    </div>
  );
}

type Pages = ReturnType<typeof useGrowingList>["pages"];

/** What is further back, which a filter that finds little goes through for a while by itself. */
function Older({ pages, empty }: { pages: Pages; empty: number }) {
  if (!pages.hasNextPage) return null;
  if (pages.isFetchNextPageError)
    return <Fault error={pages.error} retry={() => void pages.fetchNextPage()} />;
  if (empty === 0) return <More of={pages} />;
  const is_tired = empty % MAX_EMPTY_PAGES === 0 && !pages.isFetchingNextPage;
  return (
    <div className="grid justify-items-center gap-2 py-3 text-sm text-soft">
      <p role="status">{is_tired ? "Nothing more so far." : "Looking further back…"}</p>
      {is_tired ? (
        <Button onClick={() => void pages.fetchNextPage()}>Look further back</Button>
      ) : (
        <More of={pages} />
      )}
    </div>
  );
}

/** Tells people who are read to of news: not of each, but now and then of how many. */
function Word({ came, wordsFor }: { came: number; wordsFor: (new_ones: number) => string }) {
  const [said, setSaid] = useState({ came: 0, words: "" });
  const say = useEffectEvent(() => setSaid({ came, words: wordsFor(came - said.came) }));
  const has_news = came > said.came;
  useEffect(() => {
    if (!has_news) return;
    const timer = setTimeout(() => say(), said.words === "" ? 0 : WORD_MS);
    return () => clearTimeout(timer);
  }, [has_news, said]);
  return (
    <p role="status" className="sr-only">
      {said.words}
    </p>
  );
}

/** Whether a list shows news by itself, and what it does while it can't. */
export function Live() {
  const is_live = useIsLive();
  const Icon = is_live ? Radio : WifiOff;
  return (
    <p role="status" className="flex min-h-9 items-center gap-2 text-sm text-soft">
      <Icon aria-hidden className={is_live ? "size-4 text-good" : "size-4 text-warn"} />
      {is_live ? "Live" : `Not live: looking every ${LOOK_SECONDS} seconds`}
    </p>
  );
}
