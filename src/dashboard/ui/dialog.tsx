import { X } from "lucide-react";
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import { Button, IconButton } from "./button.tsx";
import { Fault } from "./notice.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

/**
 * A window over the page. The browser keeps the focus in it, closes it by Escape and gives the focus back. It asks
 * before what was typed into a form in it is thrown away, unless that is what a button of the form does.
 */
export function Dialog({ title, onClose, children }: DialogProps) {
  const frame = useRef<HTMLDialogElement>(null);
  const [asked, setAsked] = useState(false);
  const leave = (): void => {
    if (frame.current?.querySelector("form[data-typed]")) setAsked(true);
    else onClose();
  };
  const id = useId();
  // Before it is taken out of the page: the browser gives the focus back only then.
  useLayoutEffect(() => {
    const dialog = frame.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={frame}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        leave();
      }}
      // The browser closes it anyway where somebody insists.
      onClose={({ currentTarget: { open, isConnected } }) => {
        if (isConnected && !open) onClose();
      }}
      className="m-auto max-h-[90dvh] w-full max-w-xl overflow-y-auto rounded-xl border border-line bg-raised p-0 text-text shadow-2xl backdrop:bg-[#000]/45 max-sm:mb-0 max-sm:rounded-b-none"
    >
      <div className="sticky top-0 flex items-center justify-between gap-4 border-b border-line bg-raised px-5 py-3">
        <h2 id={id} className="line-clamp-3 min-w-0 text-lg font-semibold wrap-anywhere">
          {title}
        </h2>
        <IconButton label="Close" onClick={leave}>
          <X />
        </IconButton>
      </div>
      <div className="p-5">{children}</div>
      {asked && (
        <Leave stay="Go on writing" onLeave={onClose} onStay={() => setAsked(false)}>
          What you have written here is not saved.
        </Leave>
      )}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What will be gone, and what stays. */
  children: ReactNode;
  /** The act itself, such as "Delete the inbox". */
  act: string;
  busy: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
  /** The word for doing nothing. */
  cancel?: string;
}

/** Asks once before something that cannot be undone. */
export function Confirm({
  title,
  children,
  act,
  busy,
  error,
  onConfirm,
  onClose,
  cancel = "Keep it",
}: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="grid gap-4">
        <div className="grid gap-2">{children}</div>
        <Fault error={error} />
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="danger" busy={busy} onClick={onConfirm}>
            {act}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface LeaveProps {
  children: ReactNode;
  /** The word for staying. */
  stay: string;
  onLeave: () => void;
  onStay: () => void;
}

/** Asks before changes that are not saved are left behind. */
export function Leave({ children, stay, onLeave, onStay }: LeaveProps) {
  return (
    <Confirm
      title="Leave without saving?"
      act="Throw the changes away"
      cancel={stay}
      busy={false}
      error={undefined}
      onConfirm={onLeave}
      onClose={onStay}
    >
      <p>{children}</p>
    </Confirm>
  );
}
