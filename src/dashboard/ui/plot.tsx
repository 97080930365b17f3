import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import UPlot from "uplot";
import { figure } from "./figure.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

interface PlotProps {
  label: string;
  /** Days, one a value, by their first second in UTC. */
  times: number[];
  values: number[];
}

const HEIGHT = 180;
const X_STEPS = [1, 2, 7, 14, 30, 60, 90].map((days) => days * DAY_SECONDS);
/** What is counted comes in whole numbers: 1, 2, 5, 10 and so on. */
const Y_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();
const day_name = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const short_number = new Intl.NumberFormat(undefined, { notation: "compact" });

const dark = matchMedia("(prefers-color-scheme: dark)");
const themeNow = (): "dark" | "light" => (dark.matches ? "dark" : "light");

function onThemeChange(changed: () => void): () => void {
  dark.addEventListener("change", changed);
  return () => dark.removeEventListener("change", changed);
}

/** Bars over days, as wide as their place, and the figure of the day under the pointer or chosen by the arrow keys. */
export function Plot(props: PlotProps) {
  // A canvas keeps the colours that it was drawn with, so another theme needs another one.
  const theme = useSyncExternalStore(onThemeChange, themeNow);
  return <Bars key={theme} {...props} />;
}

function Bars({ label, times, values }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const [pointed, setPointed] = useState<number | null>();
  useEffect(() => {
    const holder = place.current;
    if (!holder) return;
    const made = new UPlot(optionsOf(label, holder, setPointed), [times, values], holder);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: holder.clientWidth, height: HEIGHT }));
    watch.observe(holder);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [label, times, values]);
  const newest = values.length - 1;
  const shown = Math.min(pointed ?? newest, newest);
  const point = (day: number): void => {
    const left = plot.current?.valToPos(times[Math.max(0, Math.min(day, newest))] ?? 0, "x");
    if (left !== undefined) plot.current?.setCursor({ left, top: 0 });
  };
  const sum = values.reduce((all, value) => all + value, 0);
  return (
    <div className="grid gap-1">
      <div ref={place} role="img" aria-label={`${label}: ${sum} altogether`} />
      <DayFigure
        label={label}
        time={times[shown]}
        value={values[shown]}
        day={shown}
        last={newest}
        onPoint={point}
      />
    </div>
  );
}

interface DayFigureProps {
  label: string;
  time: number | undefined;
  value: number | undefined;
  /** Its place among the days, of which the last is the newest. */
  day: number;
  last: number;
  onPoint: (day: number) => void;
}

function DayFigure({ label, time = 0, value = 0, day, last, onPoint }: DayFigureProps) {
  const words = `${day_name.format(time * 1_000)}: ${figure(value)}`;
  const days: Record<string, number> = {
    ArrowLeft: day - 1,
    ArrowDown: day - 1,
    ArrowRight: day + 1,
    ArrowUp: day + 1,
    Home: 0,
    End: last,
  };
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label={`${label}, a day`}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={day}
      aria-valuetext={words}
      className="justify-self-center rounded-md px-2 text-sm text-soft tabular-nums"
      onKeyDown={(event) => {
        const next = days[event.key];
        if (next === undefined) return;
        event.preventDefault();
        onPoint(next);
      }}
    >
      {words}
    </div>
  );
}

function optionsOf(
  label: string,
  holder: HTMLElement,
  onPoint: (day: number | null | undefined) => void,
): UPlot.Options {
  const style = getComputedStyle(holder);
  const colour = (name: string): string => style.getPropertyValue(name);
  const line = resolved(holder, colour("--line"));
  const axis = { stroke: style.color, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: holder.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx)] },
    tzDate: (second) => UPlot.tzDate(new Date(second * 1_000), "UTC"),
    scales: {
      // Room for the whole of the first and the last bar.
      x: { range: (_plot, first, last) => [first - DAY_SECONDS / 2, last + DAY_SECONDS / 2] },
      y: { range: (_plot, _low, high) => [0, Math.max(1, high)] },
    },
    axes: [
      {
        ...axis,
        incrs: X_STEPS,
        values: (_plot, days) => days.map((second) => day_name.format(second * 1_000)),
      },
      {
        ...axis,
        incrs: Y_STEPS,
        values: (_plot, counts) => counts.map((count) => short_number.format(count)),
      },
    ],
    series: [
      {},
      {
        label,
        fill: resolved(holder, colour("--accent")),
        width: 0,
        ...(UPlot.paths.bars ? { paths: UPlot.paths.bars({ size: [0.7, 48] }) } : {}),
        points: { show: false },
      },
    ],
  };
}

/** A canvas knows no variables and no light-dark(): the browser works the colour out on an element. */
function resolved(holder: HTMLElement, value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  holder.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
