import { useSold } from "../api/session.ts";

interface AllowanceProps {
  count: number;
  limit: number;
  /** What is counted, such as "inboxes". */
  noun: string;
}

/** How many there are of how many there may be; of plans it speaks only where they are sold. */
export function Allowance({ count, limit, noun }: AllowanceProps) {
  const sold = useSold();
  return (
    <>
      {count} of {limit} {noun}
      {sold && " that your plan allows"}.
    </>
  );
}
