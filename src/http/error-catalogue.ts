import type { AppError, ErrorCode } from "../errors.ts";
import { type Problem, problemOf } from "./errors.ts";

/** What `/docs/errors` says about an error beyond its title and status, with an example of the answer. */
interface CatalogueEntry {
  meaning: string;
  mend: string;
  example: { detail: string } & Pick<AppError["extras"], "fix" | "faults" | "members">;
}

/** Text between backquotes is shown as code. */
export const CATALOGUE: Record<ErrorCode, CatalogueEntry> = {
  validation_error: {
    meaning:
      "Something in the request is missing, too long, or of the wrong kind. Nothing was changed. `errors` has one entry for each fault, with the place where it is.",
    mend: "Correct what `errors` names and send the request again. Members that the server does not know do no harm, and `warnings` names them; with `Mailwright-Strict: 1` they are faults as well (`unknown_member`).",
    example: {
      detail: "body.title must have at most 200 characters.",
      faults: [{ path: "body.title", code: "too_long", message: "must have at most 200 characters" }],
    },
  },
  unauthorized: {
    meaning:
      "The request came without a valid API key or session. `detail` says whether a key came along; for one that is mistyped or revoked it is the same.",
    mend: "Send your key as the header `X-API-Key`. If you have none, sign in and make one with `POST /auth/api-key`. A key that is sent counts alone: a session cookie beside it is not looked at.",
    example: {
      detail: "This needs a valid API key, or the session of somebody who has signed in.",
      fix: "Send an API key as the header X-API-Key.",
    },
  },
  invalid_code: {
    meaning:
      "The sign-in code is wrong, too old, or already used. A code is good for ten minutes and one sign-in, and a newer one replaces it. A client that keeps the cookie of `POST /auth/request-code` has five tries at it, if it is among the first from at most four networks; all others have five together. From `POST /setup`: the link is wrong, or the server has been started again since.",
    mend: "Use the code of the newest mail, or ask for another with `POST /auth/request-code`. A setup link stands in the log of the server's last start.",
    example: { detail: "This code is wrong or no longer good." },
  },
  invalid_credentials: {
    meaning:
      "The mail address and the password do not belong together. From `POST /auth/verify`: the code is right, but `password` would not work after it. Nobody was signed in, and the code is still good.",
    mend: "Check both. If you have forgotten the password, sign in with a code from `POST /auth/request-code` and set a new one.",
    example: { detail: "The mail address or the password is wrong." },
  },
  current_password_required: {
    meaning: "This change needs your current password, and it is missing or wrong.",
    mend: "Send it, as `current_password` with `POST /auth/set-password`, as `password` with `DELETE /auth/account`. If you have forgotten it, sign in with a code: for ten minutes after that a new password can be set without the old one.",
    example: { detail: "Changing the password needs the current one." },
  },
  session_required: {
    meaning:
      "This is for a person who has signed in to this server in a browser. An API key cannot do it, so that a key that leaks, and is revoked, leaves no way in behind. What adds or changes a way to sign in, such as a password, also needs a sign-in of the last ten minutes.",
    mend: "Sign in with `POST /auth/verify` or `POST /auth/login`, and send its cookie instead of the key. If you are signed in already: sign out, sign in again, and do it within ten minutes.",
    example: {
      detail: "An API key cannot do this: it is for somebody who has signed in.",
      fix: "Sign in with POST /auth/verify or POST /auth/login, and send the cookie instead of the key.",
    },
  },
  admin_required: {
    meaning: "This is for those who run the server, and your account is not an administrator's.",
    mend: "Use the account that was made first on this server, or the one of `auth.admin_email`. `GET /auth/me` says whether an account is one (`is_admin`).",
    example: { detail: "Only an administrator of this server may do this." },
  },
  oauth_not_configured: {
    meaning:
      "Connecting an account needs an OAuth client of this server at the provider, and the operator has not set one up.",
    mend: "Make the connection with a token of your own instead, with `POST /connections`. If you run this server: set the keys that `detail` names.",
    example: {
      detail: "This server has no OAuth client for Notion: integrations.notes.client_id is not set.",
      fix: "Make the connection with a token of your own: POST /connections with kind notes and the token as credential.",
    },
  },
  mcp_oauth_unavailable: {
    meaning:
      "How to ask for access to this MCP server could not be found out, or does not work. `step` says how far it came: `probe`, `resource_metadata`, `server_metadata` or `client_registration`.",
    mend: "Read `detail`: often the server needs no authorisation, takes a token that you enter as `credential`, or wants a client that you registered there yourself, as `config.client_id`.",
    example: {
      detail: "The authorization server registers no clients by itself.",
      fix: "Register a client there by hand and set its id as config.client_id of this connection.",
      members: { step: "client_registration" },
    },
  },
  billing_not_configured: {
    meaning:
      "Paying needs an account of this server at a payment provider, and the operator has not set one up.",
    mend: "Ask whoever runs this server for a larger plan: `mailwright user set-plan` gives it. If you run it: set what `detail` names.",
    example: {
      detail: "This server takes no payments: billing.stripe_secret_key is not set.",
      fix: "Ask the operator of this server for a larger plan.",
    },
  },
  no_billing_account: {
    meaning: "You have never paid here, so there is nothing to manage or cancel.",
    mend: "Begin with `POST /billing/checkout`.",
    example: {
      detail: "You have not paid for anything here yet.",
      fix: "Begin with a plan or with credits (`POST /billing/checkout`, `POST /billing/topup`).",
    },
  },
  invalid_signature: {
    meaning:
      "What came in as an event of the payment provider, or as a mail for `POST /inbound/raw`, is not signed with the secret that this server shares with its sender, or was signed more than five minutes ago.",
    mend: "If you run this server: compare `billing.stripe_webhook_secret` with the secret that the provider shows for this address, or `inbound.secret` with that of your mail worker, and check the clocks.",
    example: { detail: "The signature of this event is wrong or too old." },
  },
  invalid_host: {
    meaning:
      "The `Host` header of the request is missing, or comes twice, or it is not a name or an address with or without a port. What the request is for cannot be told then.",
    mend: "Send the host that the server is asked under, as every browser and HTTP library does by itself. A health check may leave it out of `/livez` and `/readyz` in HTTP/1.0.",
    example: {
      detail: "The Host header of this request is missing, there are two, or it names no host.",
      fix: "Send the host that the server is asked under, once, such as Host: mail.example.org.",
    },
  },
  inbound_not_configured: {
    meaning:
      "Mail can be handed in over HTTP only where the operator has set a secret that both sides sign with, and here there is none.",
    mend: "If you run this server: set `inbound.secret`, and give the same to your mail worker. See /docs/inbound.",
    example: {
      detail: "This server takes no mail over HTTP: inbound.secret is not set.",
      fix: "If you run this server: set inbound.secret to the output of `openssl rand -hex 32`, and start it again.",
    },
  },
  already_subscribed: {
    meaning: "Your account is on this plan, or on a larger one, so there is nothing to buy.",
    mend: "Use `POST /billing/portal` to change how you pay, or to cancel.",
    example: {
      detail: "Your account has the Pro plan already.",
      fix: "POST /billing/portal changes how you pay, or cancels.",
    },
  },
  cross_origin: {
    meaning:
      "A page of another site sent this request, and your browser added the session cookie to it. It was stopped before it could do anything in your name.",
    mend: "Use the pages of this server. A program elsewhere sends an API key as `X-API-Key` instead of the cookie.",
    example: { detail: "A page of another site sent this request with your session." },
  },
  email_not_verified: {
    meaning: "The account is known, but nobody has shown yet that its mail address is theirs.",
    mend: "Ask for a code with `POST /auth/request-code` and send it to `POST /auth/verify`.",
    example: {
      detail: "Verify the mail address of this account first.",
      fix: "Sign in once with a login code.",
    },
  },
  plan_required: {
    meaning: "What you asked for belongs to a larger plan. `required_plan` names the smallest that has it.",
    mend: "Change to that plan, or ask whoever runs this server.",
    example: { detail: "Command contexts belong to the Pro plan.", members: { required_plan: "pro" } },
  },
  plan_limit_reached: {
    meaning:
      "Your account may have a certain number of these, and you have them all. `limit` says how many, `current` how many there are.",
    mend: "Delete one that you no longer need, or have more allowed: `fix` says by whom.",
    example: {
      detail: "This server allows you 3 contexts; this would make 4.",
      fix: "Remove some of your contexts, or ask the administrator of this server to raise plans.free.contexts.",
      members: { limit: 3, current: 3 },
    },
  },
  not_found: {
    meaning:
      "There is nothing under this address or id, or it is not yours. The answer is the same for both, so that nobody can find out what others have.",
    mend: "Check the id, and that you use the key of the account it belongs to. The lists, such as `GET /inboxes`, show what there is.",
    example: { detail: "There is no such inbox." },
  },
  method_not_allowed: {
    meaning: "The address exists, but not with this HTTP method.",
    mend: "Use one of the methods in the header `Allow`.",
    example: {
      detail: "PUT is not possible here.",
      fix: "Use GET or POST.",
      members: { allow: "GET, POST" },
    },
  },
  conflict: {
    meaning:
      "The request does not go together with how things are right now, for example because the same thing exists already. `detail` says what stands against it.",
    mend: "Read the thing again, see what has changed, and decide anew. Sending the same request once more does not help.",
    example: { detail: "There is already an account for ada@example.com." },
  },
  slug_taken: {
    meaning: "Another of your contexts has this slug already, and `+slug` in a mail must mean just one.",
    mend: "Choose another slug, or leave it out: then one is made from the title.",
    example: { detail: "You have another context with the slug house-style." },
  },
  inbox_required: {
    meaning: "Every call runs through an inbox, and your account has none yet.",
    mend: "Make one with `POST /inboxes`. An empty JSON object is enough.",
    example: {
      detail: "This account has no inbox.",
      fix: "Make one on the page “Inboxes” (`POST /inboxes`).",
    },
  },
  inbox_not_routed: {
    meaning: "The inbox has no model to send the work to.",
    mend: "Make a connection with `POST /connections`, then set it as `default_connection_id` of the inbox.",
    example: {
      detail: "This inbox has no model connection.",
      fix: "Connect a model, and choose it in the settings of the inbox (`POST /connections`, then `default_connection_id` with `PATCH /inboxes/{inbox_id}`).",
    },
  },
  inbox_paused: {
    meaning:
      "The owner of the inbox has paused it: it begins nothing. What was under way goes on, and mail waits, here or at its sender.",
    mend: 'Have it go on, on its page or with `PATCH /inboxes/{inbox_id}` and `{"paused": null}`, or name another inbox.',
    example: {
      detail: "This inbox is paused by its owner, so it begins nothing now.",
      fix: 'Have it go on, on its page under Settings (`PATCH /inboxes/{inbox_id}` with `{"paused": null}`), or use another inbox.',
    },
  },
  invalid_idempotency_key: {
    meaning: "The header `Idempotency-Key` is empty, too long, or has characters beyond printable ASCII.",
    mend: "Use 1 to 255 plain characters. A random UUID for each new request is a good choice.",
    example: { detail: "An Idempotency-Key has 1 to 255 printable ASCII characters." },
  },
  idempotency_key_reuse: {
    meaning:
      "This `Idempotency-Key` came before, with another body. A key stands for one request, so that a retry of it runs only once.",
    mend: "Use a new key for a new request, and the old one only to repeat the old request unchanged.",
    example: {
      detail: "This Idempotency-Key was used with another body.",
      fix: "Use a new key for a new request.",
    },
  },
  invalid_cursor: {
    meaning: "The cursor is not one that this list gave out.",
    mend: "Pass `next_cursor` of the previous page as it is, or leave `cursor` out to begin at the newest entry.",
    example: { detail: "The cursor is not one that this server gave out." },
  },
  payload_too_large: {
    meaning:
      "The request is larger than this address takes: 40 MB for `POST /v1/messages`, 512 KB for an upload, 1 MB for everything else.",
    mend: "Send less at once. Files for `POST /v1/messages` grow by a third when they are written as base64.",
    example: { detail: "The request body is larger than 1 MB." },
  },
  request_timeout: {
    meaning:
      "The body of the request did not come in time. It has 60 seconds, and one more for every 64 KB of it. Nothing was changed, and the connection was closed.",
    mend: "Send it again without pauses. With a `Content-Length` a large body has the time that its size needs.",
    example: {
      detail: "The body of this request did not come within 61 seconds.",
      fix: "Send it again without pauses, with its Content-Length: a large body has more time.",
    },
  },
  storage_full: {
    meaning:
      "Your account may store a certain number of bytes, and with this there would be more. Nothing was changed. `limit` says how many, `current` how many there are: mails, files, what calls brought along, the words of messages, and contexts. What fits is still taken; mail that does not is put off.",
    mend: "In the dashboard, choose fewer “Days to keep content” in the settings of an inbox (`retention_days` of `PATCH /inboxes/{inbox_id}`; what is older goes within the hour), delete contexts, or have more allowed. `GET /usage` says how much is used.",
    example: {
      detail: "You may store 1,000 MB, of which 999 MB are used, so there is no room for the 3.2 MB of this.",
      fix: "Choose fewer “Days to keep content” in the settings of an inbox (what is older goes within the hour), delete contexts, or ask the administrator of this server to raise plans.pro.storage_mb.",
      members: { limit: 1_048_576_000, current: 1_047_527_424 },
    },
  },
  content_lost: {
    meaning:
      "The mail or file is known, but its bytes are missing on the disk of the server, or are no longer what was stored. Nobody deleted them: somebody lost a file of the data folder, or its disk fails. What others stored is never sent in their place.",
    mend: "Send the mail or file again. If you run this server: `mailwright doctor` says what is missing; put the file back from a copy, and it is found again within the hour.",
    example: {
      detail: "The content of report.pdf is missing on the disk of this server.",
      fix: "Send it again.",
    },
  },
  rate_limited: {
    meaning:
      "There were too many requests in a short time, or too many of one account at once. This one did nothing and cost nothing.",
    mend: "Wait as many seconds as the header `Retry-After` says, then send it again.",
    example: { detail: "More than 60 requests in a minute.", fix: "Try again in 12 seconds." },
  },
  unavailable: {
    meaning: "The server is up, but cannot do this at the moment.",
    mend: "Try again after as many seconds as the header `Retry-After` says, else in a minute. If you run this server: its log and `GET /readyz` say what is wrong, most often a full disk.",
    example: {
      detail: "The server cannot store anything right now.",
      fix: "Try again in a minute. If you run this server: see whether its disk is full.",
    },
  },
  internal: {
    meaning: "The server made a mistake. It is not your fault, and the cause is in the server's log.",
    mend: "Try again. If it comes back, tell whoever runs this server the `request_id`: it leads to the entry in the log.",
    example: { detail: "Something went wrong on the server. The log says more under this request id." },
  },
};

/** Returns an example answer with this error. */
export function exampleProblem(code: ErrorCode): Problem {
  const { detail: message, ...extras } = CATALOGUE[code].example;
  return problemOf({ code, message, extras }, EXAMPLE_REQUEST);
}

const EXAMPLE_REQUEST = {
  base_url: "https://mail.example.org",
  request_id: "req_0198c0ffee007000800000000000cafe",
};
