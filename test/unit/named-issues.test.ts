import { describe, expect, test } from "bun:test";
import { isNamedIssue } from "../../src/trust/guard/named-issues.ts";

const TWELVE = { place: "Acme/site", number: 12 };
const isNamed = (trusted_text: string, places: { id: string; name: string | null }[] = []) =>
  isNamedIssue(TWELVE, { trusted_text, places });

describe("the number of an issue", () => {
  test.each([
    "Comment on acme/site#12 that it is done.",
    "see https://github.com/acme/site/issues/12?x=1#y",
    "see https://github.com/acme/site/pull/12.",
    "https://gitlab.com/acme/site/-/issues/12",
    "say so in #12",
    "(#12) in acme/site",
    "tell issue 12, please",
    "Schreib in Issue Nr. 12 von acme/site",
    "the pull request #12",
    "PR 12",
  ])("is named by %j", (said) => {
    expect(isNamed(said)).toBe(true);
  });

  test.each([
    "12",
    "at 12 o'clock in acme/site",
    "acme/app#12",
    "https://github.com/acme/app/issues/12",
    "acme/site#123, acme/site#1",
    "#12-x, #12.5, #12/3, &#12;, x#12",
    "version 12, since issue 12.5, reissue 12",
    "issue: there are 12 of them",
  ])("is not named by %j", (said) => {
    expect(isNamed(said)).toBe(false);
  });

  test("needs no name where the run has made it", () => {
    expect(isNamed("", [{ id: "acme/site#12", name: null }])).toBe(true);
    expect(isNamed("", [{ id: "acme/site#12", name: "acme/site#12" }])).toBe(false);
    expect(isNamed("", [{ id: "acme/app#12", name: null }])).toBe(false);
  });
});
