import { type ReactNode, createContext, use, useCallback, useState } from "react";
import { Button } from "./button.tsx";
import { errorWords } from "./notice.tsx";

const SHOWN_MS = 6_000;
/** Time to read it, to think, and to get there by keyboard. */
const SHOWN_WITH_UNDO_MS = 15_000;

/** As long as the server can bring back what was deleted. */
export const UNDO_MS = 30_000;

interface Toast {
  id: number;
  words: string;
  /** Takes back what the toast tells of. */
  undo?: (() => unknown) | undefined;
}

/** `undo` may give a promise: when that fails, its words are said as well. */
type Say = (words: string, undo?: () => unknown, shown_ms?: number) => void;
const Toasts = createContext<Say>(() => {});

/** Says what has just been done, for a few seconds, with a way to take it back where there is one. */
export const useToast = (): Say => use(Toasts);

export function ToastArea({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const dismiss = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const say = useCallback<Say>(
    (words, undo, shown_ms = undo ? SHOWN_WITH_UNDO_MS : SHOWN_MS) => {
      const id = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
      setToasts((all) => [...all.filter((toast) => toast.words !== words), { id, words, undo }]);
      setTimeout(() => dismiss(id), shown_ms);
    },
    [dismiss],
  );
  const takeBack = async ({ id, undo }: Toast): Promise<void> => {
    dismiss(id);
    try {
      await undo?.();
    } catch (error) {
      say(`That could not be undone. ${errorWords(error)}`);
    }
  };
  return (
    <Toasts value={say}>
      {children}
      <div
        role="status"
        aria-live="polite"
        className="pointer-events-none fixed inset-x-0 bottom-4 z-30 grid justify-items-center gap-2 px-4"
      >
        {toasts.map((toast) => (
          <div
            key={toast.id}
            className="pointer-events-auto flex items-center gap-3 rounded-lg border border-line bg-raised px-4 py-2 text-sm shadow-lg"
          >
            {toast.words}
            {toast.undo && <Button onClick={() => void takeBack(toast)}>Undo</Button>}
          </div>
        ))}
      </div>
    </Toasts>
  );
}
