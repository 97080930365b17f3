import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { connectionList, inboxList } from "../../api/lists.ts";
import type { Connection, ConnectionTest } from "../../api/shapes.ts";
import { changesOf, type Fields, fieldsOf } from "./fields.tsx";
import type { Provider } from "./providers.ts";

interface Attempt {
  fields: Fields;
  /** Set to make the connection without a test. */
  untested?: boolean;
}

/** The state of a connection that is being entered: it is tested as often as it takes, and made once. */
export function useConnecting(provider: Provider, onMade?: (connection: Connection) => void) {
  const navigate = useNavigate();
  const [fields, setFields] = useState<Fields>(() => fieldsOf({ label: provider.label ?? provider.name }));
  const [verdict, setVerdict] = useState<ConnectionTest>();
  const bodyOf = (from: Fields): object => ({
    kind: provider.kind,
    label: from.label,
    ...changesOf(from, fieldsOf({ label: from.label }), null),
  });
  const test = (from: Fields) => post<ConnectionTest>("/connections/test", bodyOf(from));
  const create = useChange<Attempt, Connection | ConnectionTest>({
    run: async ({ fields: tried, untested = false }) => {
      const found = untested ? undefined : await test(tried);
      // Signing in needs a connection, so that it is made first.
      if (found && !found.ok && found.status !== "needs_auth") return found;
      return post<Connection>("/connections", bodyOf(tried));
    },
    touches: [connectionList.queryKey, inboxList.queryKey],
    done: (made) => {
      if ("ok" in made) return setVerdict(made);
      if (onMade) return onMade(made);
      const params = { connection_id: made.id };
      void navigate({ to: "/connections/$connection_id", params, search: { test: true } });
    },
  });
  const look = useChange<void, ConnectionTest>({
    run: () => test(fields),
    touches: [],
    // The fault of a missing model is left out: whoever asks for the list has yet to choose one.
    done: (found) => setVerdict(found.error?.code === "model_not_found" ? withoutFault(found) : found),
  });
  const set = (change: Partial<Fields>): void => {
    setFields((before) => ({ ...before, ...change }));
    const elsewhere = Object.keys(change).some((name) => name !== "label" && name !== "model");
    setVerdict((before) => (elsewhere ? undefined : before && withoutFault(before)));
    // What was said is about what was entered before. An attempt that still runs is not given up by this.
    if (create.isError) create.reset();
    if (look.isError) look.reset();
  };
  const connect = (tried: Fields, untested = false): void => {
    setVerdict((before) => before && withoutFault(before));
    create.mutate({ fields: tried, untested });
  };
  return { fields, set, verdict, body: bodyOf(fields), create, look, connect };
}

function withoutFault(verdict: ConnectionTest): ConnectionTest {
  return { ...verdict, error: null };
}
