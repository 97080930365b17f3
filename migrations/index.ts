import type { Migration } from "kysely/migration";
import { foundation } from "./0001-foundation.ts";
import { accountsAndResources } from "./0002-accounts-and-resources.ts";
import { tools } from "./0003-tools.ts";
import { webhooksAndBilling } from "./0004-webhooks-and-billing.ts";

/** In order, forward only. A migration that has landed is never edited. */
export const migrations: Record<string, Migration> = {
  "0001-foundation": foundation,
  "0002-accounts-and-resources": accountsAndResources,
  "0003-tools": tools,
  "0004-webhooks-and-billing": webhooksAndBilling,
};
