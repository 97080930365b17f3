import { queryOptions, useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Activity, Connection, Inbox, Page } from "../../api/shapes.ts";

export interface FirstSteps {
  done: { model: boolean; inbox: boolean; mail: boolean };
  models: Connection[];
  inbox: Inbox | undefined;
  /** The newest message that was answered, which may be a test. */
  answered: Activity | undefined;
}

const newestAnswered = queryOptions({
  queryKey: ["answered"],
  queryFn: async ({ signal }) => (await get<Page<Activity>>("/messages?status=done&limit=1", signal)).items,
});

/** How far the account is. The server tells it, so that what is done stays done. */
export function useFirstSteps(): { steps?: FirstSteps; error: unknown } {
  const connections = useQuery(connectionList);
  const inboxes = useQuery(inboxList);
  const answers = useQuery(newestAnswered);
  const error = connections.error ?? inboxes.error ?? answers.error;
  if (!connections.data || !inboxes.data || !answers.data) return { error };
  const models = connections.data.filter(({ category }) => category === "llm");
  const inbox = inboxes.data.find(({ enabled }) => enabled);
  const answered = answers.data[0];
  const done = {
    model: models.some(isProven) || inbox?.routed === true,
    inbox: inbox !== undefined,
    mail: answered !== undefined,
  };
  return { steps: { done, models, inbox, answered }, error: null };
}

/** Whether nothing is known against a model: its test lists models, and asks none. */
export function isProven({ status }: Connection): boolean {
  return status === "ok";
}
