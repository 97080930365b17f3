import { MODEL_KINDS, type ModelKind } from "../../ai/providers.ts";
import type { App } from "../../app.ts";
import { type IntegrationKind, INTEGRATIONS } from "../../config/integrations.ts";

export type ConnectionKind = ModelKind | "mcp" | IntegrationKind;

interface ConnectionKindInfo {
  label: string;
  category: "llm" | "mcp" | "integration";
  /** The usual address of the kind; null where the connection must name one, or none is needed. */
  base_url: string | null;
  needs_credential: boolean;
  needs_base_url: boolean;
}

export const KIND_INFO: Record<ConnectionKind, ConnectionKindInfo> = {
  ...MODEL_KINDS,
  mcp: {
    label: "MCP server",
    category: "mcp",
    base_url: null,
    needs_credential: false,
    needs_base_url: true,
  },
  ...(Object.fromEntries(
    Object.entries(INTEGRATIONS).map(([kind, { label, base_url }]) => [kind, integration(label, base_url)]),
  ) as Record<IntegrationKind, ConnectionKindInfo>),
};

export const CONNECTION_KINDS = Object.keys(KIND_INFO) as ConnectionKind[];

export function isModelKind(kind: string): kind is ModelKind {
  return kind in MODEL_KINDS;
}

/** The address of a kind where the connection has no `base_url`; empty where there is none. */
export function ownBaseUrl(app: App, kind: ConnectionKind): string {
  const configured = kind in INTEGRATIONS ? app.config.integrations[kind as IntegrationKind].api_base : "";
  return configured || (KIND_INFO[kind].base_url ?? "");
}

function integration(label: string, base_url: string): ConnectionKindInfo {
  return { label, category: "integration", base_url, needs_credential: true, needs_base_url: false };
}

/** Says of a connection that is there what it is in place of a model. */
export function notOfModel({ kind, label }: { kind: string; label: string }): string {
  const what = kind === "mcp" ? "to a tool server" : `of the kind ${kind}`;
  return `The connection "${label}" is ${what}, not to a model. Name one to a model.`;
}
