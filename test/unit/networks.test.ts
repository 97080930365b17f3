import { expect, test } from "bun:test";
import { clientNetwork, isPrivateAddress, networksAround, spreadByNetwork } from "../../src/net/networks.ts";

const around: [string, string[]][] = [
  ["192.0.2.77", ["192.0.2.0", "192.0.2.77"]],
  ["::ffff:192.0.2.77", ["192.0.2.0", "192.0.2.77"]],
  ["2001:db8:1:2ff:3::4", ["2001:db8:1::", "2001:db8:1:200::", "2001:db8:1:2ff::"]],
  ["", [""]],
];

test.each(around)("the networks around %p are, from the largest on, %p", (address, networks) => {
  expect(networksAround(address)).toEqual(networks);
  expect(clientNetwork(address)).toBe(networks.at(-1) ?? "");
});

test.each([
  ["127.0.0.1", true],
  ["192.168.1.5", true],
  ["172.17.0.1", true],
  ["::ffff:10.0.0.1", true],
  ["fd00::1", true],
  ["fe80::1%eth0", true],
  ["192.0.2.77", false],
  ["2001:4860::1", false],
  ["nonsense", false],
])("whether %s is of a network of one's own: %p", (address, is_private) => {
  expect(isPrivateAddress(address)).toBe(is_private);
});

test("turns go round the networks, and within each of them round its own", () => {
  const held = [
    ["crowd-a-1", "crowd-a", "first"],
    ["crowd-a-1", "crowd-a", "second"],
    ["crowd-a-2", "crowd-a", "third"],
    ["crowd-b-1", "crowd-b", "fourth"],
    ["lone-1", "lone", "fifth"],
    ["lone-1", "lone", "sixth"],
  ] as const;
  const networksOf = ([line, place]: (typeof held)[number]): string[] => [place.slice(0, 4), place, line];
  const order = spreadByNetwork([...held], networksOf).map(([, , name]) => name);
  expect(order).toEqual(["first", "fifth", "fourth", "sixth", "third", "second"]);
  expect(spreadByNetwork([], networksOf)).toEqual([]);
});
