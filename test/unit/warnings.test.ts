import { expect, test } from "bun:test";
import { cautionsOf } from "../../src/operation/admin/warnings.ts";
import { type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";

const cautions = (smtp: ConfigOverrides["smtp"]): string[] => cautionsOf(defaultConfig({ smtp }));

test("who believes everything of a relay in front is told so", () => {
  const trusted_relays = ["192.0.2.7=mx.example.org", "2001:db8::/64=mx6.example.org"];
  const doubled = (trusted_networks: string[]) =>
    cautions({ trusted_relays, trusted_networks }).filter((caution) => caution.includes("trusted_relays"));
  expect(doubled(["127.0.0.1"])).toEqual([]);
  expect(doubled(["192.0.2.0/24"])).toEqual([expect.stringContaining("192.0.2.7=mx.example.org")]);
  expect(doubled(["2001:db8::/32"])).toEqual([expect.stringContaining("2001:db8::/64=mx6.example.org")]);
});

test("who promises https and speaks none is told so, unless a proxy is in front", () => {
  const told = (server: ConfigOverrides["server"]) =>
    cautionsOf(defaultConfig({ server })).filter((caution) => caution.startsWith("server.base_url"));
  const base_url = "https://mx.example.org";
  const words = expect.stringContaining("plain HTTP at 0.0.0.0:8080");
  expect(told({ base_url })).toEqual([words]);
  expect(told({ base_url: "HTTPS://mx.example.org" })).toEqual([words]);
  expect(told({})).toEqual([]);
  expect(told({ base_url: "http://mx.example.org:8080" })).toEqual([]);
  expect(told({ base_url, tls: "acme", listen: "0.0.0.0:443" })).toEqual([]);
  expect(told({ base_url, trusted_proxies: ["172.18.0.0/16"] })).toEqual([]);
  for (const listen of ["127.0.0.1:8080", "[::1]:8080", "localhost:8080"])
    expect(told({ base_url, listen })).toEqual([]);
});
