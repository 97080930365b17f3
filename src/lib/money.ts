/** Money is stored as whole millionths of the configured currency: a token costs a few of them. */
const MILLIONTHS = 1_000_000;

/** Money as the interface has it; null stays null. */
export function asAmount<T extends number | null>(millionths: T): T {
  return (millionths === null ? null : millionths / MILLIONTHS) as T;
}

/** Money as it is stored; null stays null. */
export function asMillionths<T extends number | null>(amount: T): T {
  return (amount === null ? null : Math.round(amount * MILLIONTHS)) as T;
}

/** "12.50 USD", and as many digits as it takes to show less than a hundredth. */
export function moneyWords(millionths: number, currency: string): string {
  const amount = millionths / MILLIONTHS;
  const digits = Number.isInteger(millionths / (MILLIONTHS / 100)) ? 2 : 6;
  return `${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: digits })} ${currency}`;
}
