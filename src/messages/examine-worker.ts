import { answerInputs } from "../lib/answer-inputs.ts";
import { createResolver, type Resolver } from "../lib/dns.ts";
import { examineMail, type MailToExamine } from "./examine.ts";

const resolvers = new Map<string, Resolver>();

/** One for all mails, as it remembers what it was told. */
function resolverOf(servers: string[]): Resolver {
  const key = servers.join(" ");
  const resolver = resolvers.get(key) ?? createResolver({ servers });
  resolvers.set(key, resolver);
  return resolver;
}

answerInputs((mail: MailToExamine) => examineMail(mail, resolverOf));
