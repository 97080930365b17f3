import ipaddr from "ipaddr.js";

const THIS_MACHINE = "localhost";

/** The host of a URL in one spelling: without the dot of the root, an IPv4 address as such, and all that surely is this machine alike. */
export function oneSpelling(hostname: string): string {
  const host = hostname.toLowerCase().replaceAll(/^\[|\]$|\.$/g, "");
  if (host.endsWith(`.${THIS_MACHINE}`)) return THIS_MACHINE;
  if (!ipaddr.isValid(host)) return host;
  const address = ipaddr.process(host);
  const is_here = address.range() === "loopback" || address.range() === "unspecified";
  return is_here ? THIS_MACHINE : address.toNormalizedString();
}
