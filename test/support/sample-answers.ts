/** Answers with everything that a model's Markdown may hold, as they are mailed; shown by scripts/show-mails.ts. */
export const SAMPLE_ANSWERS: Record<string, string> = {
  report: `# Third quarter at a glance

Revenue grew by **12 %** to €4.2 million. The details are in [the shared report](https://reports.example/q3), and the numbers below are *net of returns*[^1].

## By region

| Region | Orders | Revenue | Change | Comment |
|---|---|---|---|---|
| North | 1,204 | €1,310,400.50 | +14 % | A strong September after the new catalogue came out |
| South | 987 | €940,122.00 | +3 % | Flat until the price change |
| East | 12 | €8,020.10 | −41 % | Warehouse closed for six weeks |
| West | 2,310 | €1,941,000.00 | +18 % | |

### What to do next

1. Call the carrier about **East**, and ask for:
   - the open claims,
   - a date for the new contract.
2. Order more of item \`SKU-4471\` before 1 October.
3. Decide on the catalogue.

- [x] Numbers checked against the ledger
- [ ] Board deck sent
- [ ] Prices for the fourth quarter

> We would rather ship late than ship wrong.
>
> — the warehouse team

\`\`\`sql
SELECT region, count(*) AS orders, sum(net) AS revenue
FROM orders WHERE closed_at >= '2026-07-01' AND closed_at < '2026-10-01' GROUP BY region ORDER BY revenue DESC;
\`\`\`

---

The next report comes in January[^late].

[^1]: Returns that arrived by 30 September; later ones count for the fourth quarter.
[^late]: Or as soon as you ask for it.`,
  short:
    "Dear Ann,\n\nthe meeting is moved to **Thursday, 14:30**. I have told Bob.\n\nKind regards\nYour desk",
  long_words: `The file is at https://files.example/archive/2026/09/30/a-very-long-name-of-a-file-that-nobody-would-ever-type-by-hand/${"0123456789abcdef".repeat(6)}.pdf and its checksum is \`${"9f86d081884c7d65".repeat(4)}\`.

| File | Checksum | Bytes |
|---|---|---|
| archive.tar.gz | ${"9f86d081884c7d65".repeat(4)} | 1,204,331 |
| notes.txt | ${"2fd4e1c67a2d28fc".repeat(4)} | 812 |

Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft is one word.`,
  right_to_left: `# ملخص الربع الثالث

ارتفعت الإيرادات بنسبة **12 %** مقارنة بالعام الماضي، انظر [التقرير](https://reports.example/q3).

- الطلبات الجديدة: 1,204
- المرتجعات: 12

| المنطقة | الطلبات |
|---|---|
| الشمال | 1,204 |
| الجنوب | 987 |

> لا نرسل شيئًا قبل أن نفحصه.

This paragraph is in English, and stands on the left.`,
  wide_letters: `# 第三四半期のまとめ

売上は前年同期比で **12 %** 増加しました。詳細は[レポート](https://reports.example/q3)をご覧ください。北部では新しいカタログの発行後、九月の注文が大きく伸びましたが、東部では倉庫が六週間閉鎖されていたため、注文が減少しました。

| 地域 | 注文 |
|---|---|
| 北部 | 1,204 |
| 南部 | 987 |`,
};
