import { expect, test } from "bun:test";
import { clientBehind, isFor } from "../../src/http/request.ts";

const PROXIES = ["10.0.0.0/8", "::1"];

test("a peer that is no proxy of ours is the client, whatever it claims", () => {
  expect(clientBehind("192.0.2.1", "198.51.100.7", PROXIES)).toBe("192.0.2.1");
});

test("behind our proxies the right-most address that is not ours is the client", () => {
  expect(clientBehind("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.1.1.1", PROXIES)).toBe("198.51.100.7");
  expect(clientBehind("::1", "2001:db8::1", PROXIES)).toBe("2001:db8::1");
});

test("the port that a proxy names tells no clients apart", () => {
  expect(clientBehind("10.0.0.2", "198.51.100.7:50123, 10.1.1.1:80", PROXIES)).toBe("198.51.100.7");
  expect(clientBehind("::1", "[2001:db8::1]:443", PROXIES)).toBe("2001:db8::1");
  expect(clientBehind("::1", "[2001:db8::1]", PROXIES)).toBe("2001:db8::1");
  expect(clientBehind("::1", "unknown:80", PROXIES)).toBe("unknown:80");
});

test("a proxy that forwards nothing is the client itself", () => {
  expect(clientBehind("10.0.0.2", null, PROXIES)).toBe("10.0.0.2");
  expect(clientBehind("10.0.0.2", "10.0.0.3", PROXIES)).toBe("10.0.0.2");
});

test("a request is for its path, with a query and with a slash at its end, and for no other", () => {
  const isForMessages = (rest: string) => isFor(new Request(`http://mail.example:80${rest}`), "/v1/messages");
  for (const mine of ["/v1/messages", "/v1/messages/", "/v1/messages?a=/b", "/v1/messages/?a"])
    expect([mine, isForMessages(mine)]).toEqual([mine, true]);
  for (const other of [
    "",
    "/",
    "/v1/messages/x",
    "/v1/messages//",
    "/v1/messagesx",
    "/x/v1/messages",
    "/?/v1/messages",
  ])
    expect([other, isForMessages(other)]).toEqual([other, false]);
});
