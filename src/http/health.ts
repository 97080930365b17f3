import { Elysia, t } from "elysia";
import { type Description, describe } from "./describe.ts";

/** The result of each check by name: `ok`, or what is wrong. */
export type Checks = Record<string, string>;

export interface Health {
  ready: () => Promise<Checks>;
  /** Returns warnings by name about what works still and needs attention; none when all is well. */
  warnings?: () => Promise<Checks>;
}

const LIVE: Description = {
  tag: "Server",
  summary: "The process answers",
  open: true,
  answers: { 200: t.Object({ status: t.Literal("ok") }) },
};
const checksShape = t.Record(t.String(), t.String(), {
  examples: [{ database: "ok", smtp: "ok", disk: "ok" }],
});
const readiness = t.Object({
  status: t.Union([t.Literal("ok"), t.Literal("unavailable")]),
  checks: checksShape,
  warnings: t.Record(t.String(), t.String(), {
    description: "What works still, and needs somebody's care before long.",
    examples: [{}],
  }),
});
const READY: Description = {
  tag: "Server",
  summary: "The server can do its work; 503 names what is wrong",
  open: true,
  answers: { 200: readiness, 503: readiness },
};

/**
 * Serves `/livez`, which says that the process answers, and `/readyz`, which says that it can work; 503 names what is
 * wrong.
 */
export function healthRoutes(health: Health) {
  return new Elysia()
    .get("/livez", () => ({ status: "ok" as const }), describe(LIVE))
    .get(
      "/readyz",
      async ({ set }) => {
        const checks = await health.ready();
        const ready = Object.values(checks).every((verdict) => verdict === "ok");
        set.status = ready ? 200 : 503;
        return { status: ready ? "ok" : "unavailable", checks, warnings: (await health.warnings?.()) ?? {} };
      },
      describe(READY),
    );
}
