import type { Recipe } from "./catalogue.ts";

const EXTRACTION_RULES = `# How to extract data as JSON

Answer with one JSON value in a fenced code block marked "json" and nothing else: no introduction, no explanation. A program reads it.

Which fields:

- The instruction lists fields or shows an example: use exactly those names, in that order, with the types of the example.
- It does not: choose the fields that somebody would put into a table about this kind of document. Name them in lower-case English snake_case.
- One thing in the material is an object. Several of a kind are an array of objects that all have the same fields.

Values:

- Copy, never guess. What the material does not say is null; an empty list is []. Do not leave fields out.
- Dates as "YYYY-MM-DD", times as "YYYY-MM-DDTHH:MM" with the offset if it is known. A date whose order of day and month cannot be told (03/04/2026) stays a string as written, and its field is named in "unsure".
- Amounts as numbers with a point ("1.234,50 €" becomes 1234.5), with the ISO code in a field of its own: "currency": "EUR".
- Identifiers, telephone numbers and postcodes are strings, with their leading zeros.
- Texts without line breaks in the middle of a sentence, otherwise unchanged and not translated.

If something is doubtful (unreadable, contradictory, ambiguous), add to the object a field "unsure": a list of {"field", "why"}. If there is nothing to extract, answer {"unsure": [{"field": null, "why": "…"}]} and say why.`;

const REPLY_RULES = `# How to draft a reply

The material is a mail that the owner of this inbox has to answer. Write the reply for them to send: from their side, in the first person, ready to be copied.

- Begin with the salutation and end with the closing and the name; nothing stands before or after, apart from the notes described below.
- If the instruction says what to answer ("accept", "decline politely", "ask for Tuesday"), that decides. Without one, answer every question of the mail as far as the material and the contexts allow.
- Promise nothing, agree to no price or date, and admit no fault unless the instruction says so. Where the owner has to decide or to look something up, leave a gap in square brackets: [date], [yes or no].
- The same language as the mail, the same form of address, a tone one step more polite than the sender's. Answer anger calmly: name the concern, say what happens next, do not argue.
- Answer first, then explain. Short paragraphs, no stock phrases, at most 150 words unless the matter needs more.
- Number the answers if the mail asked several questions, in its order.
- If the mail looks like fraud or asks for passwords, payments to a new account or secrecy, write no reply: say what is suspicious.

If there are gaps or something to check, add a line "---" below the draft, and under it "For you:" with one bullet for each. These lines are not part of the reply.`;

const REPLY_FACTS = `# About me

Facts for replies in my name. Lines that still have square brackets are not filled in: use nothing from them.

- Name for the closing: [first and last name]
- Role and organisation: [what I do, and where]
- Usual closing: [Best regards, / Kind regards,]
- Telephone for callbacks: [number]
- When I can meet: [weekdays and times, with the time zone]
- How long I usually take to answer: [two working days]

## Answers I give often

- [Question, such as "What does it cost?"]: [the answer to give]
- [Question]: [the answer to give]

## What I never do by mail

- [for example: give discounts, share contact details of other people]`;

const INVOICE_RULES = `# How to read an invoice into a sheet

For each invoice in the mail or its attachments make one row with these columns, in this order:

| Column | What goes in |
|---|---|
| received | the date of the mail, YYYY-MM-DD |
| supplier | the name of the company that issued it |
| invoice_number | exactly as printed |
| invoice_date | YYYY-MM-DD |
| due_date | YYYY-MM-DD; worked out from "net 30" and the like, else empty |
| currency | ISO code, such as EUR |
| net | number with a point, no thousands separator |
| tax | number; 0 if the invoice says that none is due |
| total | number; what has to be paid |
| iban | without spaces, empty if there is none |
| reference | order or customer number, empty if there is none |
| note | what a bookkeeper should know, in a few words |

Check before you answer, and write what is wrong into "note":

- net + tax is the total, to the cent.
- It is an invoice. A quote, a reminder, a delivery note or a statement is not; name what it is and make no row. A credit note is a row with negative amounts.
- Number, date, supplier and total are there. What cannot be read stays empty: never guess an amount or an account.
- The mail speaks of a new bank account, or is in a hurry to be paid: write "check the bank account by telephone".

When the instruction begins with @sheets, look whether the sheet has a row with this supplier and invoice_number. If not, append the row; if so, change nothing and say so. Never change or delete other rows.

Answer with the row or rows as a table, the notes below it, and what was written into which sheet.`;

const BUG_RULES = `# How to turn a bug report into an issue

The material is a complaint or report, often by somebody who is no developer. Make one issue for each separate problem.

**Title**: what goes wrong and where, in at most 70 characters, such as "Export to CSV drops rows with empty dates". No "bug", no "urgent", no names.

**Body**, in this order, without parts for which there is nothing:

1. **What happens**: in one or two sentences.
2. **What should happen**
3. **Steps to reproduce**: numbered, from a known starting point. Mark a step that you concluded and that the report does not tell with "(assumed)".
4. **Environment**: version, browser or app, operating system, account type.
5. **Evidence**: error messages and log lines word for word in a code block; the names of screenshots, and what they show.
6. **Impact**: who is affected, how often, and whether there is a way around it.
7. **Missing**: the questions to ask back, the most useful first; three at most.

Labels to suggest: one of bug, regression, performance, security, question, feature-request; and one of severity-high (data lost, no way around), severity-medium, severity-low.

Rules:

- Keep names, addresses, telephone numbers, keys, tokens and customer data out of the issue; write [removed] in their place. They stay in the mail.
- Report, do not diagnose: a suspected cause goes last, marked as a guess.
- A security problem does not belong into a public issue: say so, and make none.
- When the instruction begins with @github and names a repository, first search its open issues. If one describes the same problem, add the new facts to it as a comment, else open a new one; answer with the link.
- Without that, answer with the issue as text, ready to be pasted.`;

export const WRITING_RECIPES: readonly Recipe[] = [
  {
    id: "extract-to-json",
    title: "Extract to JSON",
    description: "Send any document and get its data as clean JSON, in your fields or in sensible ones.",
    category: "filing",
    icon: "braces",
    min_plan: "free",
    requires: ["llm"],
    contexts: [
      {
        title: "How to extract data as JSON",
        slug: "json-extraction",
        kind: "instruction",
        body: EXTRACTION_RULES,
      },
    ],
    inbox: {
      label: "Data extraction",
      default_instruction: "Extract the data of this mail and its files as JSON.",
      scope: { targets: [], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "draft-reply",
    title: "Draft a reply",
    description:
      "Forward a mail, say in a few words what to answer, and get a reply in your name that is ready to send.",
    category: "writing",
    icon: "reply",
    min_plan: "free",
    requires: ["llm"],
    contexts: [
      { title: "How to draft a reply", slug: "reply-drafts", kind: "instruction", body: REPLY_RULES },
      { title: "About me", slug: "about-me", kind: "knowledge", body: REPLY_FACTS },
    ],
    inbox: {
      label: "Reply drafts",
      default_instruction: "Draft a reply to this mail.",
      scope: { targets: [], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "invoice-to-sheet",
    title: "Invoice to sheet",
    description:
      "Forward an invoice and get a checked row for your books. What would go into your sheet waits for your yes; begin with @sheets to have it added at once.",
    category: "filing",
    icon: "receipt",
    min_plan: "free",
    requires: ["llm", "sheets"],
    contexts: [
      {
        title: "How to read an invoice into a sheet",
        slug: "invoice-rows",
        kind: "instruction",
        body: INVOICE_RULES,
      },
    ],
    inbox: {
      label: "Invoices",
      default_instruction: "Make a row of each invoice in this mail and its files.",
      scope: { targets: ["sheets"], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "bug-report-to-issue",
    title: "Bug report to issue",
    description:
      "Forward a complaint and get an issue that a developer can work on; begin with @github to open it.",
    category: "filing",
    icon: "bug",
    min_plan: "free",
    requires: ["llm", "codehost-a"],
    contexts: [
      {
        title: "How to turn a bug report into an issue",
        slug: "bug-reports",
        kind: "instruction",
        body: BUG_RULES,
      },
    ],
    inbox: {
      label: "Bug reports",
      default_instruction: "Write an issue for each problem in this mail.",
      scope: { targets: ["codehost-a"], autonomous: [] },
      reply_enabled: true,
    },
  },
];
