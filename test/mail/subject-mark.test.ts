import { expect, test } from "bun:test";
import { hasReplyMark } from "../../src/mail/subject-mark.ts";

test.each([
  "",
  "Add milk to the shopping list",
  "Bitte Milch auf die Einkaufsliste setzen",
  "買い物リストに牛乳を追加してください",
  "お願い: 牛乳を追加",
  "回复客户的邮件",
  "Добавь молоко в список: 2 литра",
  "أضف الحليب إلى القائمة: لتران",
  "Shopping: milk",
  "Bug: the form is broken",
  "[acme/site] the form is broken",
  "[Desk] Calendar: lunch (Monday)",
  "Report for May: sales",
  "Reminder: lunch at 12:30",
  "Reply to Bob by Friday",
  "Forward the offer to Bob",
  "Regarding the form: it is broken",
  "Antworte Bob: ja",
  "Result: 3",
  "Trip: book it",
  "Was ist 7:30 Uhr?",
  ": colons : everywhere :",
  "::::::::::",
  "((((((((",
])("%j is a subject of its author's own", (subject) => {
  expect(hasReplyMark(subject)).toBe(false);
});

test.each([
  "re:",
  "Re:Milk",
  "RE : Milk",
  "Re: Re: Milk",
  "Re[12]: Milk",
  "AW (2): Milch",
  "[Desk][ext]Re: Milk",
  "Desk: Team: AW: Milch",
  "[Fwd] Milk",
  "[Fwd: Milk]",
  "Milk (fwd)",
  "Forward of: Milk",
  "转发: 牛奶",
  "R\u00e9p. : Lait",
  "\u200fהשב: חלב",
  "ＦＷ：牛乳",
])("%j begins with the mark of a reply or a forward", (subject) => {
  expect(hasReplyMark(subject)).toBe(true);
});
