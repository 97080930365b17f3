import { describe, expect, test } from "bun:test";
import { newsIn } from "../../src/dashboard/api/news.ts";

const news = (head: string[], known: string[]) => newsIn(head, new Set(known), (item) => item);

describe("news at the head of a list", () => {
  test("are what stands before an entry that is known", () => {
    expect(news(["e", "d", "c", "b"], ["c", "b", "a"])).toEqual(["e", "d"]);
    expect(news(["e", "d", "c", "b"], ["d", "b"])).toEqual(["e", "c"]);
  });

  test("are not the older entries that moved up because others were deleted", () => {
    expect(news(["c", "b", "a"], ["e", "d", "c", "b"])).toEqual([]);
    expect(news(["f", "c", "b", "a"], ["c"])).toEqual(["f"]);
  });

  test("are all of them where none is known", () => {
    expect(news(["b", "a"], [])).toEqual(["b", "a"]);
  });
});
