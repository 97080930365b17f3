import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { CodeAskerRow } from "../../db/schema.ts";
import { clientNetwork } from "../../net/networks.ts";
import { equalBytes, hashSecret, randomToken } from "../../lib/secrets.ts";
import { emailFingerprint } from "./accounts.ts";

const TOKEN_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** 258 bits. */
const TOKEN_CHARS = 43;
const TOKEN_FORM = /^[\w-]{43}$/;
const MAX_SWEPT = 500;
/**
 * The places for browsers that have tries of their own at the code of one address. Together with the tries that all
 * others share, that is 25 tries at a code: one chance in 40,000. With five codes an hour it is one in 8,000 an hour
 * for somebody who calls from four networks or more; from one network, all tries are 30 an hour. A browser that has
 * signed in to the address before has five more, which help nobody else.
 */
const PLACES = [0, 1, 2, 3];
/** How long a place is kept: longer than a code is valid, which somebody else may have had mailed meanwhile. */
export const ASKER_SECONDS = 900;

/** A browser that asks for a code; `client` is the address it calls from. */
export interface Asker {
  token: string;
  client: string;
  /** The value of its cookie that says that it has signed in before. */
  known: string | undefined;
}

/**
 * Returns the token that a browser keeps once it has signed in to an address. Only this server can make it, and it
 * grants nothing.
 */
export function knownToken(app: App, email: string): string {
  return app.secrets.hmac("known-browser", emailFingerprint(app, email)).toString("base64url");
}

/**
 * Returns the token that identifies a browser from asking for a code until trying it: that of its cookie, or a new one.
 */
export function askerToken(cookie: string | undefined): string {
  return cookie !== undefined && TOKEN_FORM.test(cookie) ? cookie : randomToken(TOKEN_CHARS, TOKEN_ALPHABET);
}

/**
 * Reserves tries at a code for the browser that asks for it, so that wrong guesses of others do not use them up: at
 * the code that is mailed because of it (`due`), else at the code that is valid already. In each network one browser
 * has a place, the first that came or the last that had a code mailed. Browsers that have signed in before count as
 * one network of their own, whose place others can neither take nor keep from them. This is done for every address
 * alike, or the answer would tell who has an account.
 */
export async function keepAsker(
  app: App,
  tx: Db,
  { email, token, client, known, due }: Asker & { email: string; due: boolean },
): Promise<void> {
  const address = emailFingerprint(app, email);
  const named = (name: string): string =>
    app.secrets.hmac("code-network", `${address} ${name}`).toString("hex");
  const home = named("known");
  const is_known = known !== undefined && equalBytes(known, knownToken(app, email));
  const network = is_known ? home : named(clientNetwork(client));
  const row = { address, token_hash: hashSecret(token), network, asked: app.after(0) };
  const taken = await tx
    .selectFrom("code_askers")
    .selectAll()
    .where("address", "=", address)
    .orderBy("asked")
    .orderBy("place")
    .execute();
  const found = placeOf(taken, row, { due, lapsed: app.now() - ASKER_SECONDS, home });
  if (found === undefined) return;
  const { place, anew } = found;
  const insert = tx.insertInto("code_askers").values({ ...row, place, attempts: 0 });
  const kept = anew ? { ...row, attempts: 0 } : row;
  await insert.onConflict((conflict) => conflict.columns(["address", "place"]).doUpdateSet(kept)).execute();
}

/**
 * Returns the place for a browser; undefined if there is none, so that it shares the attempts of those who did not ask.
 * `taken` is ordered by when they asked; `home` is the network of browsers that have signed in before. A place that
 * passes to another browser keeps its used attempts, because only a new code resets them. `anew` says that it does not:
 * for a browser that has signed in before, whose place outlasts the code.
 */
function placeOf(
  taken: CodeAskerRow[],
  { token_hash, network }: Pick<CodeAskerRow, "token_hash" | "network">,
  { due, lapsed, home }: { due: boolean; lapsed: number; home: string },
): { place: number; anew: boolean } | undefined {
  const own = taken.find((one) => one.token_hash === token_hash);
  if (own) return { place: own.place, anew: false };
  const neighbour = taken.find((one) => one.network === network && one.asked > lapsed);
  if (neighbour) return due ? { place: neighbour.place, anew: false } : undefined;
  const free = PLACES.find((place) => !taken.some((one) => one.place === place));
  if (free !== undefined) return { place: free, anew: false };
  const anew = network === home;
  const oldest = taken.find((one) => one.network !== home || one.asked <= lapsed);
  return oldest && (anew || due || oldest.asked <= lapsed) ? { place: oldest.place, anew } : undefined;
}

/** The browser of this token, if it asked for the code of the address and has a place. */
export function findAsker(
  app: App,
  db: Db,
  { email, token }: { email: string; token: string },
): Promise<CodeAskerRow | undefined> {
  return db
    .selectFrom("code_askers")
    .selectAll()
    .where("address", "=", emailFingerprint(app, email))
    .where("token_hash", "=", hashSecret(token))
    .where("asked", ">", app.now() - ASKER_SECONDS)
    .executeTakeFirst();
}

export async function countTry(tx: Db, { address, place, attempts }: CodeAskerRow): Promise<void> {
  const counted = tx.updateTable("code_askers").set({ attempts: attempts + 1 });
  await counted.where("address", "=", address).where("place", "=", place).execute();
}

/** Sets the tries of every browser with a place back to none: a new code begins with all of them. */
export async function renewTries(app: App, tx: Db, email: string): Promise<void> {
  const renewed = tx.updateTable("code_askers").set({ attempts: 0 });
  await renewed.where("address", "=", emailFingerprint(app, email)).execute();
}

export async function forgetAskers(app: App, tx: Db, email: string): Promise<void> {
  await tx.deleteFrom("code_askers").where("address", "=", emailFingerprint(app, email)).execute();
}

/** Deletes the places of browsers that asked before a time, some at a time: no code of theirs is valid any more. */
export async function sweepAskers(tx: Db, before: number): Promise<void> {
  const old = await tx
    .selectFrom("code_askers")
    .select(["address", "place"])
    .where("asked", "<=", before)
    .limit(MAX_SWEPT)
    .execute();
  if (old.length === 0) return;
  await tx
    .deleteFrom("code_askers")
    .where("address", "in", [...new Set(old.map(({ address }) => address))])
    .where("asked", "<=", before)
    .execute();
}
