import { urlOf } from "../lib/web-address.ts";
import { relative, resolve } from "node:path";
import { clash, isPublicHost } from "./forms.ts";
import { HOSTED_KINDS } from "./schema.ts";
import type { Values } from "./schema.ts";

/** The settings with the prices of plans. */
export const PRICES = [
  "price_pro_month",
  "price_pro_year",
  "price_team_month",
  "price_team_year",
  "price_topup",
] as const;

/** Settings with networks whose statement on a mail's origin is believed. */
const BELIEVED = ["trusted_networks", "trusted_relays", "proxy_protocol"] as const;

/** The listeners of a server, if they are open. */
const DOORS: { path: string; listen: (config: Values) => string }[] = [
  { path: "server.listen", listen: ({ server }) => server.listen },
  { path: "smtp.listen", listen: ({ smtp }) => smtp.listen },
  { path: "acme.listen", listen: ({ server, acme }) => (server.tls === "acme" ? acme.listen : "") },
  { path: "metrics.listen", listen: ({ metrics }) => metrics.listen },
];

/** A dependency of one key on another. `path` is the key to blame, `needs` the one that is missing or wrong. */
interface Rule {
  path: string;
  needs: string;
  isBroken: (config: Values) => boolean;
  words: string;
}

/**
 * Dependencies between keys. A rule is skipped while one of its keys is itself wrong, so that one mistake gives one
 * problem.
 */
export const RULES: Rule[] = [
  {
    path: "outbound.mode",
    needs: "outbound.relay_url",
    isBroken: ({ outbound }) => outbound.mode === "relay" && outbound.relay_url === "",
    words: 'is "relay", so outbound.relay_url must be set, such as "smtp://user:password@host:587"',
  },
  {
    path: "outbound.relay_url",
    needs: "outbound.relay_url",
    isBroken: ({ outbound }) => /^[^/]*\/\/[^/]*@[^/]*@/.test(outbound.relay_url),
    words: "has more than one @: write each that belongs to the user or the password as %40",
  },
  ...BELIEVED.map((name) => ({
    path: `smtp.${name}`,
    needs: `smtp.${name}`,
    isBroken: ({ smtp }: Values) => smtp[name].some((entry) => /\/0+(?:=|$)/.test(entry)),
    words:
      "has a network that is the whole internet (/0), so that anybody could write as you: name your own machines",
  })),
  ...DOORS.flatMap((one, index) =>
    DOORS.slice(index + 1).map((other) => ({
      path: other.path,
      needs: one.path,
      isBroken: (config: Values) => clash(one.listen(config), other.listen(config)),
      words: `is the same port as ${one.path}: give one of the two another`,
    })),
  ),
  {
    path: "server.tls",
    needs: "server.cert",
    isBroken: ({ server }) => server.tls === "files" && server.cert === "",
    words: 'is "files", so server.cert must be the path of the certificate in PEM form',
  },
  {
    path: "server.tls",
    needs: "server.key",
    isBroken: ({ server }) => server.tls === "files" && server.key === "",
    words: 'is "files", so server.key must be the path of the private key in PEM form',
  },
  {
    path: "server.cert",
    needs: "server.key",
    isBroken: ({ server }) => server.tls === "off" && server.cert !== "" && server.key === "",
    words: "is set, so server.key must be the path of its private key",
  },
  {
    path: "server.key",
    needs: "server.cert",
    isBroken: ({ server }) => server.tls === "off" && server.key !== "" && server.cert === "",
    words: "is set, so server.cert must be the path of its certificate",
  },
  {
    path: "server.cert",
    needs: "server.tls",
    isBroken: ({ server }) => server.tls === "acme" && server.cert + server.key !== "",
    words:
      'and server.key are for server.tls = "files"; with "acme" the certificate is got by the server itself',
  },
  {
    path: "server.tls",
    needs: "server.base_url",
    isBroken: ({ server }) => server.tls === "acme" && /^http:/i.test(server.base_url),
    words: 'is "acme", so server.base_url must begin with https://',
  },
  {
    path: "server.tls",
    needs: "acme.names",
    isBroken: ({ server, smtp, acme }) =>
      server.tls === "acme" &&
      ![urlOf(server.base_url)?.hostname ?? "", smtp.hostname, ...acme.names].some(isPublicHost),
    words:
      'is "acme", so server.base_url (such as "https://mail.example.org"), smtp.hostname or acme.names must say the public name of this server',
  },
  {
    path: "llm.kind",
    needs: "llm.base_url",
    isBroken: ({ llm }) => llm.kind === "openai_compatible" && llm.base_url === "",
    words: 'is "openai_compatible", so llm.base_url must be the address of its API',
  },
  {
    path: "llm.kind",
    needs: "llm.api_key",
    isBroken: ({ llm }) => HOSTED_KINDS.some((kind) => kind === llm.kind) && llm.api_key === "",
    words: "is a hosted service, so llm.api_key must be set",
  },
  ...(["base_url", "api_key", "model"] as const).map((name) => ({
    path: `llm.${name}`,
    needs: "llm.kind",
    isBroken: ({ llm }: Values) => llm.kind === "" && llm[name] !== "",
    words: "is set, so llm.kind must say which kind of service it belongs to",
  })),
  {
    path: "llm.models",
    needs: "llm.kind",
    isBroken: ({ llm }) => llm.kind === "" && llm.models.length > 0,
    words: "is set, so llm.kind must say which kind of service they belong to",
  },
  {
    path: "costs.prices",
    needs: "costs.currency",
    isBroken: ({ costs }) => {
      const named = Object.values(costs.prices).map(({ model, kind }) => `${kind} ${model}`);
      return new Set(named).size < named.length;
    },
    words: "has two prices for the same model and kind: leave one of them out",
  },
  {
    path: "billing.stripe_secret_key",
    needs: "billing.stripe_webhook_secret",
    isBroken: ({ billing }) => billing.stripe_secret_key !== "" && billing.stripe_webhook_secret === "",
    words: "is set, so billing.stripe_webhook_secret must be the signing secret of its webhook",
  },
  // Prices must differ, because a price tells which plan was paid for.
  ...PRICES.flatMap((one, index) =>
    PRICES.slice(index + 1).map((other) => ({
      path: `billing.${other}`,
      needs: `billing.${one}`,
      isBroken: ({ billing }: Values) => billing[other] !== "" && billing[other] === billing[one],
      words: `must be another price than billing.${one}`,
    })),
  ),
  {
    path: "mcp.dir",
    needs: "data.dir",
    isBroken: ({ mcp, data }) =>
      mcp.dir !== "" && !relative(resolve(data.dir), resolve(mcp.dir)).startsWith(".."),
    words: "is in the data folder, where programs have no business: name a folder outside of it",
  },
  {
    path: "routing.sync_budget_seconds",
    needs: "routing.hard_cap_seconds",
    isBroken: ({ routing }) => routing.sync_budget_seconds > routing.hard_cap_seconds,
    words: "must not be more than routing.hard_cap_seconds, at which a run ends",
  },
];
