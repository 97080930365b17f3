import { member, parseJson } from "../../lib/foreign-json.ts";
import { quote, errorTextOf } from "../../lib/quote.ts";
import { type NetworkFault, retryAfterSeconds } from "../../net/responses.ts";
import { spanWords } from "../../lib/durations.ts";

const MAX_DETAILS = 3;

const SENTENCES: Record<number, string> = {
  402: "asks for payment. See the plan of the account there.",
  403: "does not allow this. Check what the token may do, and who may do this there.",
  405: "has no such interface at this address. Check the base URL of the connection.",
  409: "met another change of the same thing. Look at it again, then try again.",
  410: "does not offer this there any more, or has it switched off.",
  413: "takes no request as large as this one. Send less at once.",
};

/** A failed call, with the sentence for its caller, on its way to `tools.ts`. */
export class ApiFault extends Error {
  /** The status of the answer; 0 if there was no answer. */
  readonly status: number;

  constructor(message: string, status = 0) {
    super(message);
    this.name = "ApiFault";
    this.status = status;
  }
}

/** What sentences about an integration are made of. */
export interface Speaker {
  /** `GitHub`, `GitLab at git.example.com` */
  name: string;
  /** What to do about something that is missing, or hidden from the account. */
  missing: string;
  /** Set if the credential came by OAuth, so that no key can be typed in. */
  oauth: boolean;
  /** This moment, in unix seconds. */
  now: number;
  secrets: string[];
}

/** A bad answer as a fault, with its cause and mend. */
export function refusalFault(speaker: Speaker, response: Response, body: string): ApiFault {
  const { status } = response;
  const sentence = isLimited(response) ? limited(speaker, response) : judge(speaker, status);
  const words = quote([errorTextOf(body), detailOf(body)].filter(Boolean).join(" "), speaker.secrets);
  const said = words === "" || words === "{}" ? "" : ` It said: ${words}`;
  return new ApiFault(`${speaker.name} (${status}) ${sentence}${said}`, status);
}

export function tokenFault({ name, oauth }: Speaker): ApiFault {
  const mend = oauth ? "Connect it again." : "Enter a valid one in this connection.";
  return new ApiFault(`${name} does not accept the token any more. ${mend}`, 401);
}

export function wireFault({ name }: Speaker, { code, message }: NetworkFault): ApiFault {
  return code === "timeout" || code === "cancelled"
    ? new ApiFault(`${name} did not answer in time. Try again in a minute.`)
    : new ApiFault(`${name} could not be reached. ${message}`);
}

/** Whether an answer limits requests: GitHub does so with status 403 and these headers. */
function isLimited({ status, headers }: Response): boolean {
  const told = headers.has("retry-after") || headers.get("x-ratelimit-remaining") === "0";
  return status === 429 || (status === 403 && told);
}

function limited({ now }: Speaker, { headers }: Response): string {
  const reset = Number(headers.get("x-ratelimit-reset") ?? Number.NaN);
  const seconds = retryAfterSeconds(headers) ?? (reset > now ? Math.ceil(reset - now) : null);
  const when = seconds === null ? "later" : `in ${spanWords(seconds)}`;
  return `is limiting this account's requests. Try again ${when}.`;
}

function judge({ missing }: Speaker, status: number): string {
  if (status === 404) return `has no such thing, or does not show it to this account. ${missing}`;
  const known = SENTENCES[status];
  if (known !== undefined) return known;
  if (status >= 500) return "has a fault of its own. Try again later; if it lasts, see its status page.";
  if (status < 400) return "redirects to another address, which is not followed. Check the base URL.";
  return "did not accept the request. Change what it says is wrong.";
}

/** The faulty fields, which GitHub names beside its sentence. */
function detailOf(body: string): string {
  const errors = member(parseJson(body), "errors");
  const details = (Array.isArray(errors) ? errors.slice(0, MAX_DETAILS) : []).map((error: unknown) => {
    const parts = [member(error, "message"), member(error, "field"), member(error, "code")];
    return parts.filter((part) => typeof part === "string").join(" ");
  });
  return details.length === 0 ? "" : `(${details.join("; ")})`;
}
