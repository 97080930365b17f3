import { useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import { connectionList, contextList } from "../../api/lists.ts";
import type { Activity, Connection, Context, Inbox, Page } from "../../api/shapes.ts";
import { shortTarget } from "../connections/short-target.ts";
import type { Suggestion, Vocabulary } from "./completion.ts";

/** How many of the newest messages are looked through for tags. */
const MESSAGES_READ = 100;
const TAGS_STALE_MS = 60_000;

/** The names that an instruction to this inbox can hold. */
export function useVocabulary(inbox: Inbox | undefined): Vocabulary {
  const { data: connections = [] } = useQuery(connectionList);
  const { data: contexts = [] } = useQuery(contextList);
  const { data: messages } = useQuery({
    queryKey: ["tags"],
    queryFn: ({ signal }) => get<Page<Activity>>(`/messages?limit=${MESSAGES_READ}`, signal),
    staleTime: TAGS_STALE_MS,
  });
  const models = connections.filter(({ category }) => category === "llm");
  return {
    targets: targetsOf(inbox, connections),
    contexts: namesOf(contexts, "+", ({ kind }) => kind !== "command"),
    macros: namesOf(contexts, "$", ({ kind }) => kind === "command"),
    tags: tagsOf(messages?.items ?? []),
    connections: [...new Set(models.map(({ label }) => label))],
    models: [...new Set(models.flatMap(({ model }) => model ?? []))],
  };
}

function targetsOf(inbox: Inbox | undefined, connections: Connection[]): Suggestion[] {
  const attached = inbox?.mcp_connection_ids ?? [];
  const may = inbox?.scope?.targets;
  const usable = connections.filter(
    ({ id, category, target }) =>
      target !== null && (category !== "mcp" || attached.includes(id)) && (!may || may.includes(target)),
  );
  const targets = new Map(usable.map(({ target, label }) => [`@${shortTarget(target ?? "")}`, label]));
  return [
    ...[...targets].map(([text, words]) => ({ text, words })),
    { text: "@ai", words: "The model alone, without tools" },
  ];
}

function namesOf(contexts: Context[], sign: string, is: (context: Context) => boolean): Suggestion[] {
  const usable = contexts.filter((context) => context.enabled && is(context));
  return usable.map(({ slug, title }) => ({ text: `${sign}${slug}`, words: title }));
}

/** Returns the tags of recent instructions, the newest first. */
function tagsOf(messages: Activity[]): Suggestion[] {
  const tags = new Set(messages.flatMap(({ command }) => command?.tags ?? []));
  return [...tags].map((tag) => ({ text: `#${tag}`, words: "Used before" }));
}
