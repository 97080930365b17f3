import ipaddr from "ipaddr.js";

/** Whether an address is in one of the networks: `192.0.2.0/24`, `::1/128` or a single address. */
export function inNetworks(address: string, networks: string[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  // `process` turns a v4-mapped v6 address into the v4 one it stands for.
  const client = ipaddr.process(address);
  return networks.some((network) => {
    if (!ipaddr.isValidCIDR(network)) {
      return ipaddr.isValid(network) && ipaddr.process(network).toString() === client.toString();
    }
    const range = ipaddr.parseCIDR(network);
    return range[0].kind() === client.kind() && client.match(range);
  });
}
