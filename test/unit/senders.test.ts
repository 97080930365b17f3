import { expect, test } from "bun:test";
import { sendersIn, wholeProviders } from "../../src/dashboard/pages/inboxes/senders.ts";

test.each([
  ["typed", "ada@example.com\n\n @example.com, @*.example.com; bob@example.net carl@example.net", 5],
  ["with a name", "Bob Builder <bob@example.net>", 1],
  ["with names that have a comma", '"Builder, Bob" <bob@example.net>, Ox, Carl <carl@example.net>', 2],
  ["with a name beside one without", "bob@example.net, Carl <carl@example.net>", 2],
  ["as a link", "mailto:bob@example.net?subject=Hi\n<mailto:carl@example.net>", 2],
])("senders are taken as they are pasted: %s", (_how, text, count) => {
  const found = sendersIn(text);
  expect(found).toHaveLength(count);
  for (const sender of found) expect(sender).toMatch(/^[a-z]*@(\*\.)?example\.(com|net)$/);
});

test("what is no address stays, to be refused by its words", () => {
  expect(sendersIn("bob\nann@localhost")).toEqual(["bob", "ann@localhost"]);
});

test("a whole public provider is known, and no other domain", () => {
  const entries = ["@gmail.com", "@*.yahoo.co.uk", "*@Web.de", "ann@gmail.com", "@example.com", "gmail.com"];
  expect(wholeProviders(entries)).toEqual(["gmail.com", "yahoo.co.uk", "web.de"]);
});
