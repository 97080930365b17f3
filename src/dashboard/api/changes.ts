import {
  type MutationKey,
  type QueryKey,
  useIsMutating,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";

interface Change<Input, Output> {
  run: (input: Input) => Promise<Output>;
  /** The lists and things that may look different afterwards. */
  touches: QueryKey[];
  /** A promise that it returns belongs to the change, which is under way until then. */
  done?: (output: Output, input: Input) => unknown;
  /** The key by which `useIsMutating` shows others that the change is under way. */
  key?: MutationKey;
}

/** Something that is done on the server; what it touches is read anew before `done` is called. */
export function useChange<Input = void, Output = unknown>({
  run,
  touches,
  done,
  key,
}: Change<Input, Output>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: run,
    ...(key ? { mutationKey: key } : {}),
    onSuccess: async (output, input) => {
      await Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })));
      await done?.(output, input);
    },
  });
}

/** The key of the deletion of something with this id. */
export function deletionOf(id: string): MutationKey {
  return ["delete", id];
}

/** Whether something is being deleted, so that its page must not ask for it again: news of it may come meanwhile. */
export function useIsBeingDeleted(id: string): boolean {
  return useIsMutating({ mutationKey: deletionOf(id) }) > 0;
}
