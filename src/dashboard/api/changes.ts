import { type MutationKey, type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";

interface Change<Input, Output> {
  run: (input: Input) => Promise<Output>;
  /** The lists and things that may look different afterwards. */
  touches: QueryKey[];
  done?: (output: Output, input: Input) => void;
  /** By which others see, with `useIsMutating`, that it is under way. */
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
      done?.(output, input);
    },
  });
}
