import { t } from "elysia";

const moment = (what: string) => t.Nullable(t.Integer({ description: `${what}, in unix seconds.` }));

const DnsRecordShape = t.Object(
  {
    type: t.Union([t.Literal("TXT"), t.Literal("MX")]),
    name: t.String({ description: "Where to publish it.", examples: ["_mailwright.ai.example.com"] }),
    value: t.String({
      description:
        "What to publish. For `spf` this is the record that is there already, with this server added.",
      examples: ["mailwright-verify=q8k2v5c0x7n4m1z9s6d3f0g7h2j5l8p1"],
    }),
    priority: t.Nullable(t.Integer({ description: "The priority of an MX record." })),
    purpose: t.Union(
      ["ownership", "inbound_mx", "spf", "dkim", "dmarc"].map((name) => t.Literal(name)),
      { description: "`dkim`: one record for each key, those that sign in front, RSA before Ed25519." },
    ),
    required: t.Boolean({ description: "The domain becomes active once every required record is seen." }),
    status: t.Union(
      ["verified", "missing", "mismatch", "pending"].map((name) => t.Literal(name)),
      { description: "`pending`: not looked for yet, or the DNS did not answer." },
    ),
    found: t.Array(t.String(), { description: "What the last check saw there." }),
    reason: t.String({ description: "Why it has this status, and what to do.", examples: ["It is there."] }),
  },
  { $id: "DnsRecord" },
);

const ServiceRecordShape = t.Object(
  {
    type: t.Union(["A", "AAAA", "CNAME", "MX", "TXT", "PTR"].map((name) => t.Literal(name))),
    name: t.String({ description: "Where to publish it.", examples: ["mail.example.com"] }),
    value: t.Nullable(
      t.String({ description: "What to publish; null where only you know it.", examples: ["203.0.113.7"] }),
    ),
    priority: t.Nullable(t.Integer({ description: "The priority of an MX record." })),
    purpose: t.Union(
      ["address", "inbound_mx", "spf", "dkim", "dmarc", "ptr", "mta_sts", "mta_sts_host", "tls_rpt"].map(
        (name) => t.Literal(name),
      ),
    ),
    required: t.Boolean({ description: "Whether mail suffers without it." }),
    note: t.String({ description: "What it is for.", examples: ["this machine"] }),
    status: t.Union(
      ["verified", "missing", "mismatch", "pending"].map((name) => t.Literal(name)),
      { description: "`pending`: the DNS did not answer." },
    ),
    found: t.Array(t.String(), { description: "What is there now." }),
    reason: t.String({ description: "Why it has this status, and what to do.", examples: ["It is there."] }),
  },
  { $id: "ServiceRecord" },
);

export const ServiceDnsShape = t.Object(
  {
    domain: t.String({
      description: "What addresses of inboxes end with: `smtp.domain`.",
      examples: ["mail.example.com"],
    }),
    hostname: t.String({ description: "`smtp.hostname`.", examples: ["mail.example.com"] }),
    public: t.Boolean({
      description: "Whether it is a name that others could look up. If not, there is nothing to publish.",
    }),
    ready: t.Boolean({ description: "Whether every required record is seen." }),
    records: t.Array(ServiceRecordShape),
  },
  { $id: "ServiceDns", description: "The DNS of the server's own domain." },
);

export const CustomDomainShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    domain: t.String({ description: "In its A-label form.", examples: ["ai.example.com"] }),
    status: t.Union(
      ["pending", "active", "failed"].map((name) => t.Literal(name)),
      {
        description:
          "`failed`: the records were not seen within 7 days, of which the owner is mailed; they are looked for once a day for 30 days more, and verifying begins anew.",
      },
    ),
    publishable: t.Boolean({
      description:
        "False while this server has no name that others could look up (`smtp.hostname`): its records would lead nowhere.",
    }),
    dns_records: t.Array(DnsRecordShape),
    verified_at: moment("When it became active"),
    last_checked_at: moment("When its records were last looked for"),
    error: t.Nullable(t.String({ description: "What stands in its way.", examples: [null] })),
    created: t.Integer({ description: "In unix seconds." }),
  },
  { $id: "CustomDomain" },
);
