import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import UPlot from "uplot";

interface PlotProps {
  label: string;
  /** Unix seconds, one a value. */
  times: number[];
  values: number[];
}

const HEIGHT = 180;

/** Bars over time, as wide as their place. A screen reader gets the sum in words. */
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
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high)] } },
    axes: [axis, { ...axis, size: 56 }],
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
