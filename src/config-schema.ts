import {
  later,
  ACCOUNT,
  ADDRESS,
  ANY_TEXT,
  COMMAND,
  HOST,
  KEY_OF_32_BYTES,
  LISTEN,
  LISTEN_OR_OFF,
  NAME_SERVER,
  NETWORK,
  ORIGIN,
  PATH,
  RELAY_URL,
  SQLITE_URL,
  TARGET,
  WEB_URL,
  choice,
  count,
  delays,
  list,
  required,
  seconds,
  secret,
  sections,
  text,
  url,
  variables,
  whole,
} from "./config-keys.ts";
import type { Section, ValuesOf } from "./config-keys.ts";

const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;
const MAX_CONNECTIONS = 100_000;
/** Shorter than the lease of a run. */
const MAX_RUN_SECONDS = 600;

/** Kinds of model connection that are of no use without an API key. */
const HOSTED_KINDS = ["openai", "anthropic", "google", "mistral", "groq", "openrouter"] as const;

const INTEGRATION = {
  client_id: text(""),
  client_secret: secret(),
  authorize_url: url("", WEB_URL),
  token_url: url("", WEB_URL),
  api_base: url("", WEB_URL),
};

/** Every key there is. A new key is one line here and one in config.example.toml. */
export const SCHEMA = {
  server: {
    listen: text("0.0.0.0:8080", LISTEN),
    base_url: url("", ORIGIN),
    trusted_proxies: list([], NETWORK),
    tls: choice(["off", "files"], "off"),
    cert: text(""),
    key: text(""),
    cors_origins: list([], ORIGIN),
  },
  smtp: {
    listen: text("0.0.0.0:2525", LISTEN_OR_OFF),
    hostname: text("", HOST),
    domain: text("", HOST),
    max_message_bytes: whole(31_457_280, 1024, MAX_MESSAGE_BYTES),
    trusted_networks: list([], NETWORK),
    early_talker_ms: whole(100, 0, 60_000),
    max_connections: whole(1000, 1, MAX_CONNECTIONS),
    max_connections_per_address: whole(50, 1, MAX_CONNECTIONS),
    trusted_relays: later(list([], TARGET)),
    proxy_protocol: later(list([], NETWORK)),
  },
  outbound: {
    mode: choice(["capture", "relay", "direct"], "capture"),
    relay_url: url("", RELAY_URL),
    retry: delays([60, 300, 900, 3600, 14_400, 43_200, 86_400]),
    from: text("", ADDRESS),
  },
  database: { url: url("", SQLITE_URL) },
  data: { dir: text("./data", PATH) },
  dns: { servers: list([], NAME_SERVER) },
  auth: {
    admin_email: text("", ADDRESS),
    registration: choice(["open", "closed"], "open"),
    session_days: whole(30, 1, 400),
  },
  security: { master_key: secret(KEY_OF_32_BYTES) },
  llm: {
    kind: choice(["", ...HOSTED_KINDS, "ollama", "openai_compatible", "demo"], ""),
    base_url: url("", WEB_URL),
    api_key: secret(),
    model: text(""),
  },
  egress: { allow: list([], TARGET) },
  webhooks: {
    allow: list([], TARGET),
    backoff: delays([0, 60, 300, 1800, 7200, 28_800]),
    timeout_seconds: seconds(15, MAX_RUN_SECONDS),
    disable_after: count(5),
  },
  routing: {
    sync_budget_seconds: seconds(90, MAX_RUN_SECONDS),
    hard_cap_seconds: seconds(600, MAX_RUN_SECONDS),
    concurrency: whole(8, 1, 1000),
    max_tool_rounds: count(12),
  },
  plans: {
    default: choice(["", "free", "pro", "team"], ""),
    free: {
      credits: count(100),
      inboxes: count(3),
      connections: count(10),
      route_per_minute: count(20),
      allowlist_entries: count(50),
      mcp_per_inbox: count(3),
      contexts: count(3),
      custom_domains: count(1),
      webhooks: count(3),
      api_keys: count(1),
      concurrent_routes: count(2),
      api_per_minute: count(300),
      inbound_per_hour: count(60),
      inbound_per_day: count(300),
      history_days: count(30),
    },
    pro: {
      credits: count(2000),
      inboxes: count(10),
      connections: count(25),
      route_per_minute: count(60),
      allowlist_entries: count(200),
      mcp_per_inbox: count(10),
      contexts: count(50),
      custom_domains: count(3),
      webhooks: count(10),
      api_keys: count(10),
      concurrent_routes: count(5),
      api_per_minute: count(600),
      inbound_per_hour: count(300),
      inbound_per_day: count(0),
      history_days: count(365),
    },
    team: {
      credits: count(10_000),
      inboxes: count(50),
      connections: count(100),
      route_per_minute: count(120),
      allowlist_entries: count(500),
      mcp_per_inbox: count(20),
      contexts: count(200),
      custom_domains: count(20),
      webhooks: count(50),
      api_keys: count(50),
      concurrent_routes: count(10),
      api_per_minute: count(1_200),
      inbound_per_hour: count(1_000),
      inbound_per_day: count(0),
      history_days: count(730),
    },
  },
  limits: {
    replies_per_conversation_hour: count(10),
    replies_per_sender_hour: count(20),
    replies_per_sender_day: count(100),
    same_body_per_hour: count(3),
    inbound_per_sender_hour: count(20),
    inbound_per_sender_day: count(100),
    code_per_email_hour: count(5),
    code_per_ip_hour: count(20),
    verify_per_ip_hour: count(30),
    login_per_ip_hour: count(100),
    login_failures: count(10),
    contact_per_ip_hour: count(5),
    contact_per_ip_day: count(20),
    inbox_test_per_hour: count(10),
    inbox_rotate_per_day: count(10),
    vcard_mail_per_hour: count(5),
  },
  mcp: {
    stdio: sections({
      command: required(text("", COMMAND)),
      args: list([], ANY_TEXT),
      env: variables(),
      accounts: list([], ACCOUNT),
    }),
  },
  billing: {
    stripe_secret_key: secret(),
    stripe_webhook_secret: secret(),
    stripe_api_base: url("", WEB_URL),
    price_pro_month: text(""),
    price_pro_year: text(""),
    price_team_month: text(""),
    price_team_year: text(""),
    price_topup: text(""),
    topup_credits: count(1_000),
  },
  integrations: {
    notes: INTEGRATION,
    "codehost-a": INTEGRATION,
    "codehost-b": INTEGRATION,
    sheets: INTEGRATION,
  },
  domains: { verification: choice(["dns", "trust"], "dns") },
  metrics: { listen: later(text("", LISTEN_OR_OFF)), token: later(secret()) },
  log: {
    level: choice(["trace", "debug", "info", "warn", "error", "fatal", "silent"], "info"),
    format: choice(["text", "json"], "text"),
  },
} satisfies Section;

export type Values = ValuesOf<typeof SCHEMA>;

/** What a key needs of another one. `path` is the key to blame, `needs` the one that is missing or wrong. */
interface Rule {
  path: string;
  needs: string;
  isBroken: (config: Values) => boolean;
  words: string;
}

/** A rule is not asked while one of its two keys is itself at fault: one mistake, one problem. */
export const RULES: Rule[] = [
  {
    path: "outbound.mode",
    needs: "outbound.relay_url",
    isBroken: ({ outbound }) => outbound.mode === "relay" && outbound.relay_url === "",
    words: 'is "relay", so outbound.relay_url must be set, such as "smtp://user:password@host:587"',
  },
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
    path: "routing.sync_budget_seconds",
    needs: "routing.hard_cap_seconds",
    isBroken: ({ routing }) => routing.sync_budget_seconds > routing.hard_cap_seconds,
    words: "must not be more than routing.hard_cap_seconds, at which a run ends",
  },
];
