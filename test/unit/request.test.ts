import { expect, test } from "bun:test";
import { clientBehind } from "../../src/http/request.ts";

const PROXIES = ["10.0.0.0/8", "::1"];

test("a peer that is no proxy of ours is the client, whatever it claims", () => {
  expect(clientBehind("192.0.2.1", "198.51.100.7", PROXIES)).toBe("192.0.2.1");
});

test("behind our proxies the right-most address that is not ours is the client", () => {
  expect(clientBehind("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.1.1.1", PROXIES)).toBe("198.51.100.7");
  expect(clientBehind("::1", "2001:db8::1", PROXIES)).toBe("2001:db8::1");
});

test("a proxy that forwards nothing is the client itself", () => {
  expect(clientBehind("10.0.0.2", null, PROXIES)).toBe("10.0.0.2");
  expect(clientBehind("10.0.0.2", "10.0.0.3", PROXIES)).toBe("10.0.0.2");
});
