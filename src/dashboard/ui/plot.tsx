import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import UPlot from "uplot";

interface PlotProps {
  label: string;
  /** Days, one a value, by their first second in UTC. */
  times: number[];
  values: number[];
}

const HEIGHT = 180;
const DAY_SECONDS = 86_400;
const X_STEPS = [1, 2, 7, 14, 30, 60, 90].map((days) => days * DAY_SECONDS);
/** What is counted comes in whole numbers: 1, 2, 5, 10 and so on. */
const Y_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();
const day_name = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const short_number = new Intl.NumberFormat(undefined, { notation: "compact" });

/** Bars over days, as wide as their place. A screen reader gets the sum in words. */
export function Plot({ label, times, values }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const holder = place.current;
    if (!holder) return;
    const plot = new UPlot(optionsOf(label, holder), [times, values], holder);
    const watch = new ResizeObserver(() => plot.setSize({ width: holder.clientWidth, height: HEIGHT }));
    watch.observe(holder);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [label, times, values]);
  const sum = values.reduce((all, value) => all + value, 0);
  return <div ref={place} role="img" aria-label={`${label}: ${sum} altogether`} />;
}

function optionsOf(label: string, holder: HTMLElement): UPlot.Options {
  const style = getComputedStyle(holder);
  const colour = (name: string): string => style.getPropertyValue(name);
  const line = resolved(holder, colour("--line"));
  const axis = { stroke: style.color, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: holder.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
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
