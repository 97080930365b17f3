/** Whether a TXT record is one of SPF (RFC 7208 §4.5). */
export function isSpf(text: string): boolean {
  return /^v=spf1(?: |$)/i.test(text);
}

/** Whether a record lets `host` send: by name, or by `mx` where the host is one of the domain's MX. */
export function allowsHost(record: string, host: string, is_mx: boolean): boolean {
  const terms = termsOf(record);
  const all = terms.findIndex(isAll);
  // Receivers look at nothing behind "all" (RFC 7208 §5.1).
  const read = all === -1 ? terms : terms.slice(0, all);
  return read.some((term) => {
    const bare = term.toLowerCase().replace(/^\+/, "");
    return bare === `a:${host}` || (is_mx && bare === "mx");
  });
}

/** One record that says what all of `records` say, and lets `host` send too. */
export function withHost(records: string[], host: string): string {
  const terms = [...new Set(records.flatMap(termsOf))];
  const senders = terms.filter((term) => !isAll(term) && !isRedirect(term));
  const rest = terms.find(isAll) ?? terms.find(isRedirect) ?? (records.length === 0 ? "-all" : "");
  const own = `a:${host}`;
  const others = senders.filter((term) => term.toLowerCase().replace(/^[+?~-]/, "") !== own);
  return ["v=spf1", own, ...others, rest].join(" ").trimEnd();
}

function termsOf(record: string): string[] {
  return record.split(/ +/).slice(1).filter(Boolean);
}

function isAll(term: string): boolean {
  return /^[+?~-]?all$/i.test(term);
}

function isRedirect(term: string): boolean {
  return /^redirect=/i.test(term);
}
