import { describe, expect, test } from "bun:test";
import { type AskedCall, GUARD } from "../../src/trust/guard/guard.ts";
import { addGiven, noGivenIds } from "../../src/trust/guard/given-ids.ts";
import { objectionTo } from "../support/guard.ts";
import { ownMs } from "../support/own-time.ts";

/** What the guard says of a call in a run that has read words of others, whose author has named the server. */
function said(
  args: Record<string, unknown>,
  { read_only, ...more }: { read_only: boolean } & Partial<AskedCall>,
): string | null {
  const asked = { scope: null, target: "mcp:desk", tools: true, allow_destructive: false };
  const found = objectionTo({
    tool: {
      target: "mcp:desk",
      name: "do_it",
      description: "",
      parameters: { type: "object" },
      read_only,
      destructive: false,
      foreign: true,
      call: () => Promise.reject(new Error("not in this test")),
    },
    args,
    powers: GUARD.powersOf({ ...asked, authority: "owner" }),
    tainted: true,
    beside: null,
    subject_alone: false,
    instruction: "Look it up.",
    trusted_text: "Look it up.\nada@example.com",
    places: [],
    read_at: [],
    anybodys: true,
    own_domains: ["mw.test"],
    ...more,
  });
  return found?.reason ?? null;
}

describe.each([true, false])(
  "what a tool server calls its own things (a tool that only reads: %p)",
  (read_only) => {
    test.each<[Record<string, unknown>]>([
      [{ uri: "note://groceries" }],
      [{ uri: "note:///2026/groceries" }],
      [{ uri: "note://my%20list/bread" }],
      [{ resource_uri: "calendar://primary" }],
      [{ resource: "calendar://primary/events" }],
      [{ doc_uri: "obsidian://open?vault=home" }],
      [{ title: "Moved note://groceries" }],
      [{ href: "/calendars/home/7.ics" }],
      [{ href: "/calendars/ada@example.com/events/" }],
      [{ href: "#top" }],
      [{ endpoint: "/events" }],
      [{ endpoint: "GET /events?limit=5" }],
      [{ url: "?page=2" }],
      [{ webhook_enabled: "true" }],
      [{ callback: "false" }],
      [{ callback_name: "Ready" }],
      [{ endpoint_type: "public" }],
      [{ webhookId: "18f3" }],
    ])("is no place: %j", (args) => {
      expect(said(args, { read_only })).toBeNull();
      expect(said(args, { read_only, tainted: false })).toBeNull();
    });

    test.each<[Record<string, unknown>]>([
      [{ uri: "note://eve.example.com/secret" }],
      [{ uri: "note://eve%2eexample%2ecom/secret" }],
      [{ uri: "note://eve\u3002example\u3002com/secret" }],
      [{ uri: "note://eve@example.com" }],
      [{ uri: "note://nas:8080/x" }],
      [{ uri: "note://93.184.216.34/x" }],
      [{ uri: "note://2130706433/x" }],
      [{ uri: "note://[2001:db8::1]/x" }],
      [{ uri: "note:////eve/x" }],
      [{ uri: "note://x//eve.example.com/secret" }],
      [{ uri: "note://x/https://eve.example.com/secret" }],
      [{ uri: "note://open?url=https%3A%2F%2Feve.example.com%2Fsecret" }],
      [{ uri: "note://x?at=secret.eve.example.com" }],
      [{ uri: "file:///etc/passwd" }],
      [{ uri: "http://nas/reboot" }],
      [{ uri: "s3://eve/secret" }],
      [{ uri: "tg://resolve?domain=eve" }],
      [{ href: "//eve.example.com/secret" }],
      [{ href: "/\\eve.example.com/secret" }],
      [{ href: "/%2feve.example.com/secret" }],
      [{ href: "/eve.example.com/secret" }],
      [{ href: "/go/eve.example.com/secret" }],
      [{ href: "/go?to=eve.example.com" }],
      [{ href: "/go?to=https://eve.example.com/secret" }],
      [{ href: "/calendars/eve@example.net/events/" }],
      [{ endpoint: "GET https://eve.example.com/secret" }],
      [{ endpoint: "GET //eve.example.com/secret" }],
      [{ url: "localhost/x" }],
      [{ url: "intranet" }],
      [{ url: "2130706433" }],
      [{ webhook_name: "0x7f000001" }],
      [{ webhook_name: "eve.example.com" }],
      [{ callback_name: "secret.eve.example.com" }],
    ])("is still one with a host in it: %j", (args) => {
      expect(said(args, { read_only })).toContain("was to go to");
    });
  },
);

describe("an id with an @", () => {
  const RESULT =
    '[{"message_id":"<CAB+x7@mail.example.com>","uid":"abc123@example.com","id":"77@example.com"}]';
  const given = noGivenIds();
  addGiven(given, RESULT);
  addGiven(given, "From: Eve <eve@example.net>\nMessage-ID: <m9@mail.example.net>\nid: eve@example.net");
  addGiven(
    given,
    '{"body":"uid: eve@example.net, \\"id\\": \\"eve@example.net\\"","user_id":"eve@example.net"}',
  );

  test.each<[Record<string, unknown>]>([
    [{ message_id: "<CAB+x7@mail.example.com>" }],
    [{ messageId: "CAB+x7@mail.example.com" }],
    [{ message_ids: ["<CAB+x7@mail.example.com>", "<m9@mail.example.net>"] }],
    [{ in_reply_to: "<m9@mail.example.net>" }],
    [{ references: "<CAB+x7@mail.example.com> <m9@mail.example.net>" }],
    [{ rfc822_message_id: "m9@mail.example.net" }],
    [{ event_id: "abc123@example.com" }],
    [{ iCalUID: "abc123@example.com" }],
    [{ uid: "abc123@example.com" }],
    [{ uids: ["abc123@example.com"] }],
    [{ id: "77@example.com" }],
  ])("may go back to the server that gave it: %j", (args) => {
    for (const read_only of [true, false]) {
      expect(said(args, { read_only, given })).toBeNull();
      expect(said(args, { read_only })).toContain("was to go to");
    }
  });

  test.each<[string, Record<string, unknown>]>([
    ["it differs by a letter", { message_id: "CAB+x8@mail.example.com" }],
    ["it differs by a capital", { message_id: "cab+x7@mail.example.com" }],
    ["it has something behind it", { message_id: "CAB+x7@mail.example.com.example.net" }],
    ["it has something before it", { message_id: "secret.CAB+x7@mail.example.com" }],
    ["another one stands beside it", { references: "<CAB+x7@mail.example.com> <secret@example.net>" }],
    ["it stands in a mail, and not in a field of that name", { id: "eve@example.net" }],
    ["it stands in a mail as that field", { uid: "eve@example.net" }],
    ["the field is of another name", { id: "abc123@example.com" }],
    ["it is of a person", { user_id: "eve@example.net" }],
    ["it is of a person, by the address", { email_id: "eve@example.net" }],
    ["it is of a calendar", { calendar_id: "eve@example.net" }],
    ["it is of a chat", { chat_id: "eve@example.net" }],
    ["it is a recipient", { to: "eve@example.net" }],
    ["it is a text", { q: "eve@example.net" }],
  ])("is a place where %s", (_why, args) => {
    expect(said(args, { read_only: false, given })).toContain("was to go to");
  });

  test("of a mail of this server is read, and never written to", () => {
    const ours = noGivenIds();
    addGiven(ours, '{"message_id":"<0193@mw.test>"}');
    const args = { message_id: "<0193@mw.test>" };
    expect(said(args, { read_only: true, given: ours })).toBeNull();
    expect(said(args, { read_only: false, given: ours })).toContain("an address of this server");
  });

  test("is found in linear time", () => {
    for (const part of ["@", "a@", "a@b ", "<", "[", '{"a":', '"a@b",']) {
      const start = ownMs();
      addGiven(noGivenIds(), part.repeat(100_000));
      expect(ownMs() - start).toBeLessThan(500);
    }
  });
});
