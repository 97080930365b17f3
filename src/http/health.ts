import { Elysia } from "elysia";

/** A check's name and `ok`, or the reason why it is not. */
export type Checks = Record<string, string>;

export interface Health {
  ready: () => Promise<Checks>;
}

/** `/livez`: the process answers. `/readyz`: it can do its work; 503 names what is wrong. */
export function healthRoutes(health: Health) {
  return new Elysia()
    .get("/livez", () => ({ status: "ok" }))
    .get("/readyz", async ({ set }) => {
      const checks = await health.ready();
      const ready = Object.values(checks).every((verdict) => verdict === "ok");
      set.status = ready ? 200 : 503;
      return { status: ready ? "ok" : "unavailable", checks };
    });
}
