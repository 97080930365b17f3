import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";

interface Change<Input, Output> {
  run: (input: Input) => Promise<Output>;
  /** The lists and things that may look different afterwards. */
  touches: QueryKey[];
  done?: (output: Output, input: Input) => void;
}

/** Something that is done on the server; what it touches is read anew before `done` is called. */
export function useChange<Input = void, Output = unknown>({ run, touches, done }: Change<Input, Output>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: async (output, input) => {
      await Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })));
      done?.(output, input);
    },
  });
}
