import { t } from "elysia";

export const DepartureShape = t.Object(
  {
    authorize_url: t.String({
      format: "uri",
      description: "Open it in a browser: the provider asks there whether you agree.",
      examples: ["https://github.com/login/oauth/authorize?response_type=code&client_id=Iv1.example"],
    }),
    url: t.String({
      format: "uri",
      description: "The same as `authorize_url`.",
      examples: ["https://github.com/login/oauth/authorize?response_type=code&client_id=Iv1.example"],
    }),
  },
  { $id: "OAuthDeparture", description: "Where to send the browser. Good for ten minutes, and once." },
);

export const ClientDocumentShape = t.Object(
  {
    client_id: t.String({ format: "uri" }),
    client_name: t.String({ examples: ["Mailwright"] }),
    client_uri: t.String({ format: "uri" }),
    redirect_uris: t.Array(t.String({ format: "uri" })),
    grant_types: t.Array(t.String(), { examples: [["authorization_code", "refresh_token"]] }),
    response_types: t.Array(t.String(), { examples: [["code"]] }),
    token_endpoint_auth_method: t.String({ examples: ["none"] }),
  },
  { $id: "OAuthClientDocument", description: "This server as an OAuth client (RFC 7591 names)." },
);
