import { answerInputs } from "../lib/answer-inputs.ts";
import { createResolver, type Resolver } from "../net/dns.ts";
import type { AskedDns, MailToExamine } from "./examine.ts";
import { examineNoted } from "./examine-noted.ts";

const resolvers = new Map<string, Resolver>();

/** Returns the resolver for these servers. All mails share it with its cache. */
function resolverOf({ servers, counts }: AskedDns): Resolver {
  const key = servers.join(" ");
  const resolver = resolvers.get(key) ?? createResolver({ servers, counts });
  resolvers.set(key, resolver);
  return resolver;
}

/** Returns a resolver that calls `goOn` each time the DNS has answered. */
function telling(resolver: Resolver, goOn: () => void): Resolver {
  return (...question) => resolver(...question).finally(goOn);
}

answerInputs((mail: MailToExamine, goOn) => examineNoted(mail, (dns) => telling(resolverOf(dns), goOn)));
