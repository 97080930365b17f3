import {
  type ReactNode,
  type Ref,
  useEffect,
  useEffectEvent,
  useImperativeHandle,
  useRef,
  useState,
} from "react";
import { classes } from "./class-names.ts";

/** Rows above and below what is in view, so that a quick scroll does not meet an empty place. */
const AROUND = 25;

interface LongListProps<T> {
  label: string;
  items: T[];
  keyOf: (item: T) => string;
  row: (item: T) => ReactNode;
  /** Sets `--row`, which is how high each row is. */
  className: string;
  ref?: Ref<HTMLUListElement>;
}

interface Range {
  from: number;
  to: number;
  /** A row out of view that has the focus, which it would lose if it went. */
  kept: number;
}

/** A list of any length, of which only the rows in view and a few around them are in the page. */
export function LongList<T>({ label, items, keyOf, row, className, ref }: LongListProps<T>) {
  const frame = useRef<HTMLUListElement>(null);
  const [range, setRange] = useState<Range>({ from: 0, to: 2 * AROUND, kept: -1 });
  useImperativeHandle(ref, () => frame.current as HTMLUListElement);
  const measure = useEffectEvent(() => {
    if (!frame.current || items.length === 0) return;
    const next = rangeIn(frame.current, items.length);
    setRange((old) => (isSame(old, next) ? old : next));
  });
  useEffect(() => {
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);
  useEffect(() => measure());
  return (
    <ul
      ref={frame}
      aria-label={label}
      tabIndex={-1}
      style={{ height: `calc(${items.length} * var(--row))` }}
      className={classes(
        "relative box-content rounded-xl border border-line bg-card outline-none",
        className,
      )}
    >
      {placesOf(range, items.length).map((at) => {
        const item = items[at];
        if (item === undefined) return null;
        return (
          <li
            key={keyOf(item)}
            data-at={at}
            aria-posinset={at + 1}
            aria-setsize={items.length}
            style={{ top: `calc(${at} * var(--row))` }}
            className="absolute inset-x-0 h-(--row) overflow-hidden border-line not-first:border-t"
          >
            {row(item)}
          </li>
        );
      })}
    </ul>
  );
}

function rangeIn(frame: HTMLUListElement, count: number): Range {
  const { top, height } = frame.getBoundingClientRect();
  const first = Math.floor((-top / height) * count);
  const shown = Math.ceil((innerHeight / height) * count);
  // In steps: not each row that is scrolled by is a change.
  const from = Math.max(0, Math.floor(first / AROUND - 1) * AROUND);
  const to = Math.ceil((first + shown) / AROUND + 1) * AROUND;
  const focused = document.activeElement?.closest("[data-at]");
  const kept = focused && frame.contains(focused) ? Number(focused.getAttribute("data-at")) : -1;
  return { from, to, kept: kept >= from && kept < to ? -1 : kept };
}

function isSame(one: Range, other: Range): boolean {
  return one.from === other.from && one.to === other.to && one.kept === other.kept;
}

function placesOf({ from, to, kept }: Range, count: number): number[] {
  const places = Array.from({ length: Math.max(0, Math.min(to, count) - from) }, (_, index) => from + index);
  if (kept < 0) return places;
  return kept < from ? [kept, ...places] : [...places, kept];
}
