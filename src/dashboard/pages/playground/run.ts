import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { parseCommand } from "../../../pipeline/command.ts";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import { session } from "../../api/session.ts";
import type { RoutingResult } from "../../api/shapes.ts";

const POLL_MS = 700;

/** What is to be run, as the form has it. */
export interface Input {
  instruction: string;
  content: string;
  inbox_id: string;
  files: File[];
  /** The conversation to go on with. */
  conversation_id?: string;
}

/** Runs a call and follows it: while it goes on, `result` has its steps. `accepted` is called once it is under way. */
export function useRun(accepted?: () => void) {
  const queries = useQueryClient();
  const [started, setStarted] = useState<RoutingResult>();
  const [began, setBegan] = useState(0);
  const start = useChange<Input, RoutingResult>({
    run: async (input) =>
      post<RoutingResult>("/v1/messages", { ...(await bodyOf(input)), async: !isPrivate(input) }),
    touches: [["messages"]],
    done: (result) => {
      setStarted(result);
      accepted?.();
    },
  });
  const id = started?.message_id;
  const { data: polled, error: lost } = useQuery({
    queryKey: ["routing", id],
    queryFn: ({ signal }) => get<RoutingResult>(`/v1/messages/${id}`, signal),
    enabled: started?.status === "processing",
    refetchInterval: ({ state }) => (!state.data || state.data.status === "processing" ? POLL_MS : false),
  });
  const result = polled ?? started;
  const running = start.isPending || result?.status === "processing";
  useEffect(() => {
    if (!running) void queries.invalidateQueries({ queryKey: session.queryKey });
  }, [running, queries]);
  return {
    running,
    /** When it was sent, by the clock of this browser. */
    began,
    result: start.isPending ? undefined : result,
    refused: start.error,
    lost,
    start: (input: Input) => {
      setStarted(undefined);
      setBegan(Math.floor(Date.now() / 1_000));
      start.mutate(input);
    },
  };
}

export type Run = ReturnType<typeof useRun>;

/** Whether a run is private: its answer is stored nowhere, so only the call that waits for it gets it. */
function isPrivate({ instruction }: Input): boolean {
  return Object.hasOwn(parseCommand(instruction).options, "private");
}

/** The call without its files. */
export function plainBodyOf({ instruction, content, inbox_id, conversation_id }: Input) {
  return {
    instruction,
    ...(inbox_id ? { inbox_id } : {}),
    ...(content ? { content } : {}),
    ...(conversation_id ? { conversation_id } : {}),
  };
}

export function contentTypeOf(file: File): string {
  return file.type || "application/octet-stream";
}

async function bodyOf(input: Input): Promise<object> {
  const attachments = await Promise.all(
    input.files.map(async (file) => ({
      filename: file.name,
      content_type: contentTypeOf(file),
      data: base64Of(new Uint8Array(await file.arrayBuffer())),
    })),
  );
  return { ...plainBodyOf(input), ...(attachments.length > 0 ? { attachments } : {}) };
}

const STEP_BYTES = 0x8000;

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP_BYTES)
    text += String.fromCharCode(...bytes.subarray(at, at + STEP_BYTES));
  return btoa(text);
}
