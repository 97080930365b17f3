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
