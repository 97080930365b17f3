import { Elysia } from "elysia";
import { type DescribedRoute, type OpenApiDocument, openApiOf } from "./openapi.ts";

/** The machine-readable interface, made of the routes once somebody asks for it. */
export function docsRoutes(routes: () => DescribedRoute[]) {
  let document: OpenApiDocument | undefined;
  return new Elysia().get("/openapi.json", () => (document ??= openApiOf(routes())));
}
