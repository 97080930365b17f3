import { queryOptions, useQuery } from "@tanstack/react-query";
import { get } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Activity, Connection, Inbox, Page } from "../../api/shapes.ts";

export interface FirstSteps {
  done: { model: boolean; inbox: boolean; mail: boolean };
  models: Connection[];
  inbox: Inbox | undefined;
  /** The newest test that was answered. */
  answered: Activity | undefined;
}

const answeredTest = queryOptions({
  queryKey: ["answered-test"],
  queryFn: async ({ signal }) =>
    (await get<Page<Activity>>("/messages?source=test&status=done&limit=1", signal)).items,
});

/** How far the account is. It is told by the server, so that what is done stays done. */
export function useFirstSteps(): { steps?: FirstSteps; error: unknown } {
  const connections = useQuery(connectionList);
  const inboxes = useQuery(inboxList);
  const tests = useQuery(answeredTest);
  const error = connections.error ?? inboxes.error ?? tests.error;
  if (!connections.data || !inboxes.data || !tests.data) return { error };
  const models = connections.data.filter(({ category }) => category === "llm");
  const inbox = inboxes.data.find(({ enabled }) => enabled);
  const answered = tests.data[0];
  const done = {
    model: models.some(isProven) || inbox?.routed === true,
    inbox: inbox !== undefined,
    mail: answered !== undefined,
  };
  return { steps: { done, models, inbox, answered }, error: null };
}

/** Whether the model has answered once. */
export function isProven({ status }: Connection): boolean {
  return status === "ok";
}
