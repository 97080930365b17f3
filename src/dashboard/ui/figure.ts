const number = new Intl.NumberFormat();

/** A number as people write it: 10,000. */
export const figure = (value: number): string => number.format(value);
