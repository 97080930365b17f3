import { expect, test } from "bun:test";
import { isSameSite } from "../../src/net/domain-owner.ts";

test.each<[string, string, boolean]>([
  ["https://as.acme.com", "https://as.acme.com/authorize", true],
  ["https://as.acme.com", "https://www.acme.com:8443/authorize", true],
  ["https://as.acme.com", "https://ACME.com./authorize", true],
  ["https://as.acme.co.uk", "https://login.acme.co.uk", true],
  ["https://acme.co.uk", "https://honest.co.uk", false],
  ["https://acme.com", "https://acme.com.evil.com", false],
  ["https://acme.com", "https://notacme.com", false],
  // What companies share out: tenants are strangers.
  ["https://eve.github.io", "https://honest.github.io", false],
  ["https://eve.workers.dev", "https://honest.workers.dev", false],
  ["https://as.eve.workers.dev", "https://mcp.eve.workers.dev", true],
  ["https://github.io", "https://honest.github.io", false],
  ["https://github.io", "https://github.io/authorize", true],
  ["https://com", "https://com", true],
  // Without a registrable domain a port is a server of its own.
  ["http://127.0.0.1:8080", "http://127.0.0.1:8080/authorize", true],
  ["http://127.0.0.1:8080", "http://127.0.0.1:8081", false],
  ["https://93.184.215.14", "https://93.184.215.15", false],
  ["https://1.2.3.4", "https://9.2.3.4", false],
  ["https://[2001:db8::1]", "https://[2001:db8:0::1]/authorize", true],
  ["https://[2001:db8::1]", "https://[2001:db8::2]", false],
  ["http://localhost:1", "http://localhost:1", true],
  ["http://localhost:1", "http://localhost:2", false],
  ["http://localhost:1", "http://127.0.0.1:1", false],
  ["http://intranet", "http://wiki", false],
  ["https://acme.com", "https://93.184.215.14", false],
  ["https://93.184.215.14", "https://acme.com", false],
])("%s and %s are one site: %s", (one, other, same) => {
  expect(isSameSite(new URL(one), new URL(other))).toBe(same);
});
