import { type Kysely, sql } from "kysely";

/** What the recipes of that time made. No title of them but the last one is made a short name like this by itself. */
const OF_RECIPES = [
  ["email-summary", "How to summarise a mail"],
  ["translation", "How to translate"],
  ["meeting-notes", "How to write meeting notes"],
  ["research-rules", "How to work on a research brief"],
  ["brief", "Research brief"],
  ["json-extraction", "How to extract data as JSON"],
  ["reply-drafts", "How to draft a reply"],
  ["invoice-rows", "How to read an invoice into a sheet"],
  ["bug-reports", "How to turn a bug report into an issue"],
  ["about-me", "About me"],
];
/** Who wrote an "About me" of their own did not make it in the second of this one. */
const MADE_TOGETHER = { slug: "about-me", with: "reply-drafts" };

/**
 * A context is for every inbox, or for those that name it. One that a recipe made is for its inbox, and for those whose
 * owner put it on their lists. Where no inbox lists it any more the owner has changed that, and it stays for every inbox.
 */
export const contextScope = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const [table, column] of [
      ["contexts", "every_inbox"],
      ["inboxes", "every_context"],
    ] as const)
      await db.schema
        .alterTable(table)
        .addColumn(column, "integer", (c) => c.notNull().defaultTo(1))
        .execute();
    await sql`update inboxes set every_context = 0 where context_ids is not null`.execute(db);
    for (const [slug, title] of OF_RECIPES)
      await sql`update contexts set every_inbox = 0
        where slug = ${slug} and title = ${title}
        and exists (select 1 from inboxes i where i.user_id = contexts.user_id and i.deleted_at is null
          and i.context_ids like '%' || contexts.id || '%')
        and (slug <> ${MADE_TOGETHER.slug} or exists (select 1 from contexts c
          where c.user_id = contexts.user_id and c.slug = ${MADE_TOGETHER.with}
          and c.created between contexts.created - 1 and contexts.created + 1))`.execute(db);
  },
};
