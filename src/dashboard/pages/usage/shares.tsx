import { figure } from "../../ui/figure.ts";
import { Card } from "../../ui/page.tsx";
import { type Sums, useMeasures } from "./figures.ts";

interface SharesProps {
  title: string;
  rows: (Sums & { key: string; name: string })[];
}

/** The shares in the usage: a bar for the answers of each row, and its figures. */
export function Shares({ title, rows }: SharesProps) {
  const measures = useMeasures();
  const most = Math.max(1, ...rows.map(({ runs }) => runs));
  return (
    <Card title={title}>
      <div className="overflow-x-auto">
        <table className="w-full text-sm">
          <thead>
            <tr className="text-left text-soft">
              <th scope="col" className="py-1 font-medium">
                Name
              </th>
              {measures.map(({ name }) => (
                <th key={name} scope="col" className="py-1 pl-3 text-right font-medium">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key} className="border-t border-line">
                <th scope="row" className="w-full max-w-0 py-2 text-left font-normal">
                  <span className="block truncate" title={row.name}>
                    {row.name}
                  </span>
                  <Bar share={row.runs / most} />
                </th>
                {measures.map(({ name, of }) => (
                  <td key={name} className="py-2 pl-3 text-right align-top tabular-nums">
                    {figure(of(row))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** A bar for a share of the whole; the figures beside it say the same. */
export function Bar({ share }: { share: number }) {
  return (
    <svg aria-hidden className="mt-1 h-1.5 w-full rounded-full bg-hover">
      <rect width={`${Math.max(1, share * 100)}%`} height="100%" rx="3" className="fill-accent" />
    </svg>
  );
}
