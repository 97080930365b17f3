import type { Recipe } from "./catalogue.ts";

const SUMMARY_RULES = `# How to summarise a mail

The reader is busy and has not seen the mail. After your answer they must know what it says, what is wanted of them, and by when, without opening it.

Answer in this order, and leave out a part that would be empty:

1. **In one sentence**: what this mail is about and what it wants.
2. **Key points**: three to seven bullets, the most important first. Keep every number, date, amount, name and condition that matters, exactly as it is written.
3. **To do**: one line for each thing somebody is asked to do, in the form "who: what (by when)". Write "you" for the reader. Write "no date given" where there is none.
4. **Open questions**: what the mail asks or leaves undecided.

Rules:

- Of a thread, tell where it stands now; mention earlier mails only where they explain that. If people disagree, say who wants what.
- Tell what an attachment says as part of the points and name the file. If you could not read one, say so.
- Never add a fact, a judgement or advice that is not in the mail. Where it is unclear or contradicts itself, say that instead of guessing.
- If the mail presses for money, passwords or a quick click, say in the first line that it looks like fraud, and why.
- At most 200 words, however long the mail is. A mail of under five sentences gets one or two sentences and no headings.
- Answer in the language of the mail, unless the instruction asks for another.`;

const DIGEST_RULES = `# How to write the digest

The material is the mail that came in since the last digest. The reader wants to know in two minutes what needs them, and to skip the rest.

Answer in this order, and leave out a part that would be empty:

1. **Needs you**: one bullet for each mail that asks the reader for something or has a date, the most pressing first: who, what, by when.
2. **Good to know**: one line for each other mail that tells something new: sender, then the point.
3. **The rest**: advertising, notices of machines and newsletters, each in a few words, in one line together.

Rules:

- Every mail stands in exactly one part. Mails of one thread are one entry that tells where it stands now.
- Keep numbers, dates, amounts and names exactly as they are written. Add nothing that is not in a mail.
- A mail that presses for money, passwords or a quick click goes first, marked "looks like fraud", with the reason.
- At most 300 words. Answer in the language that most of the mail has, unless the instruction asks for another.`;

const TRANSLATION_RULES = `# How to translate

Which way to translate:

- The instruction names the target language ("to German", "--lang=fr"): use that one.
- It names none: translate into English, or, if the text is English already, into the language that the instruction is written in. If that is English too, ask for the target language in one sentence and do nothing else.

The translation:

- Carry over the meaning, the tone and the degree of politeness, as a native speaker would have written it. Do not translate word for word.
- Keep the structure: paragraphs, lists, headings, tables and line breaks stay where they are.
- Leave untouched: names of people, companies and products, addresses, links, code, file names, order and reference numbers. Keep every amount in its currency and every measure in its unit; adapt only how numbers and dates are written.
- Where the language has a formal and an informal "you", follow the original; where it does not tell, use the formal one.
- A quoted or forwarded thread: translate the newest mail in full, and older ones only if the instruction asks for all.

Answer with the translation alone, without an introduction. Only if something could not be carried over faithfully (a play on words, an ambiguous sentence, a legal term without an equivalent), add a line "Notes" below and explain each case in one sentence.`;

const MINUTES_RULES = `# How to write meeting notes

The material is a transcript, rough notes or a thread about a meeting. Make notes that somebody who was not there can act on.

Use exactly these headings, and write "None." under one that has nothing:

**Meeting**: title, date, who took part. Only what the material says.

**Summary**: three sentences at most.

**Decisions**: numbered; what was decided, with the reason if one was given. A proposal that nobody confirmed is not a decision.

**Action items**: a table with the columns Who, What, By when. One task to a row, beginning with a verb. If nobody took a task, write "unassigned"; if no date was named, write "open". Never invent either.

**Discussed**: one bullet for each topic, with the positions that were taken. Leave out small talk and repetition.

**Open questions**: what has to be settled before the next meeting, and who can settle it.

Rules:

- Name people as the material does. If a speaker is not known, write "Speaker 1" and so on, consistently.
- Turn "tomorrow" and "next Friday" into dates only if the material tells on which day it was said; else keep the words.
- If parts of a transcript are garbled, say which ones instead of smoothing them over.
- When the instruction begins with @notes, also save the notes as a new page called "YYYY-MM-DD title", and say in the answer where it is.
- Answer in the language of the meeting.`;

const RESEARCH_RULES = `# How to work on a research brief

A brief helps one person to decide. It is honest about what is known.

- Work with the material first: the mail, its attachments, the contexts, and the tools that this inbox may use. Say of each statement where it comes from, with the name of the file, the sender or the page in brackets.
- What you only know from training is welcome as background, but mark it "(general knowledge, not checked)". Never make up a source, a quotation, a link or a number.
- Tell facts, estimates and opinions apart. Where sources disagree, show both and say which one is better founded and why.
- Say how old the information is where that matters: prices, laws, versions, people in office.
- Prefer a short table to a long paragraph when things are compared. Use the same criteria for all of them.
- End with what would change the conclusion, and with the one or two questions whose answers would help most.`;

const RESEARCH_MACRO = `Write a research brief on the following question:

{{input}}

Use this structure, about one page in all:

1. **Answer**: the conclusion in two or three sentences, with how sure you are (high, medium, low) and why.
2. **Background**: what one has to know to follow, in five bullets at most.
3. **Findings**: the three to six points that decide the matter, each with its source.
4. **Options**: if there is something to choose, a table of the choices with advantages, drawbacks, cost or effort, and risk.
5. **Recommendation**: what to do next, in concrete steps.
6. **Not known**: what is missing, what could be wrong, and how to find out.`;

export const READING_RECIPES: readonly Recipe[] = [
  {
    id: "email-summarizer",
    title: "Summarise mail",
    description: "Forward a long mail or thread and get back what it says, what you have to do, and by when.",
    category: "reading",
    icon: "list",
    min_plan: "free",
    requires: ["llm"],
    contexts: [
      { title: "How to summarise a mail", slug: "email-summary", kind: "instruction", body: SUMMARY_RULES },
    ],
    inbox: {
      label: "Summaries",
      default_instruction: "Summarise this mail.",
      scope: { targets: [], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "translate",
    title: "Translate",
    description: "Forward a text, name a language, and get a translation that reads as if written in it.",
    category: "reading",
    icon: "languages",
    min_plan: "free",
    requires: ["llm"],
    contexts: [
      { title: "How to translate", slug: "translation", kind: "instruction", body: TRANSLATION_RULES },
    ],
    inbox: {
      label: "Translations",
      default_instruction: "Translate this mail.",
      scope: { targets: [], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "meeting-notes",
    title: "Meeting notes",
    description:
      "Send a transcript or rough notes and get decisions, action items and open questions; begin with @notes to file them.",
    category: "reading",
    icon: "notebook",
    min_plan: "free",
    requires: ["llm", "notes"],
    contexts: [
      {
        title: "How to write meeting notes",
        slug: "meeting-notes",
        kind: "instruction",
        body: MINUTES_RULES,
      },
    ],
    inbox: {
      label: "Meeting notes",
      default_instruction: "Write the notes of this meeting.",
      scope: { targets: ["notes"], autonomous: [] },
      reply_enabled: true,
    },
  },
  {
    id: "research-brief",
    title: "Research brief",
    description:
      "Write $brief and a question, attach what you have, and get a one-page brief that tells sources from guesses.",
    category: "reading",
    icon: "search",
    min_plan: "pro",
    requires: ["llm"],
    contexts: [
      {
        title: "How to work on a research brief",
        slug: "research-rules",
        kind: "instruction",
        body: RESEARCH_RULES,
      },
      { title: "Research brief", slug: "brief", kind: "command", body: RESEARCH_MACRO },
    ],
    inbox: { label: "Research", default_instruction: null, scope: null, reply_enabled: true },
  },
  {
    id: "weekday-digest",
    title: "Weekday digest",
    description:
      "Have newsletters and notices sent to one address, and read on weekdays at eight what matters of them.",
    category: "reading",
    icon: "newspaper",
    min_plan: "free",
    requires: ["llm"],
    contexts: [
      {
        title: "How to write the digest",
        slug: "digest-rules",
        kind: "instruction",
        body: DIGEST_RULES,
      },
    ],
    inbox: {
      label: "Digest",
      default_instruction: "Sum up this mail.",
      scope: { targets: [], autonomous: [] },
      reply_enabled: true,
      inbound_policy: { process_bulk: true },
      rules: [
        {
          name: "For the digest",
          when: [{ field: "authority", is: ["owner"], not: true }],
          do: { keep: true },
        },
      ],
    },
    schedule: {
      title: "Weekday digest",
      instruction: "Sum up the mail that came in since the last digest.",
      every: "weekday 8:00",
    },
  },
];
