import { useMe } from "../api/session.ts";

const CENTS = 0.1;

/** Money in the currency of the server, with more digits where it is little. */
export function useMoney(): (amount: number) => string {
  const { currency } = useMe();
  return (amount) =>
    new Intl.NumberFormat(undefined, {
      style: "currency",
      currency,
      maximumFractionDigits: amount < CENTS ? 6 : 2,
    }).format(amount);
}
