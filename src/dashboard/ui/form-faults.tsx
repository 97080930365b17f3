import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { ApiError, type FieldFault } from "../api/client.ts";
import { Fault } from "./notice.tsx";

interface Faults {
  /** By a field, as long as it shows the fault. */
  show: (fault: FieldFault) => () => void;
  /** What no field shows. */
  rest: unknown;
  /** The mend of the one fault that a field shows. */
  fix: string | undefined;
}

const FormFaults = createContext<Faults>({ show: () => () => undefined, rest: null, fix: undefined });

interface FormFrameProps {
  error: unknown;
  onSubmit: () => void;
  className: string;
  children: ReactNode;
}

/**
 * A form that says each thing once: what is wrong with a field at the field, and the rest in its `RestOfFaults`. Once
 * something was typed into it, it is marked for the window that it is in.
 */
export function FormFrame({ error, onSubmit, className, children }: FormFrameProps) {
  const frame = useRef<HTMLFormElement>(null);
  const [shown, setShown] = useState<FieldFault[]>([]);
  const show = useCallback((fault: FieldFault) => {
    setShown((before) => [...before, fault]);
    return () => setShown((before) => before.filter((other) => other !== fault));
  }, []);
  const faults = useMemo(
    () => ({ show, rest: restOf(error, shown), fix: fixOf(error) }),
    [show, error, shown],
  );
  useEffect(() => {
    if (error) focusFirstFault(frame.current);
  }, [error]);
  return (
    <FormFaults value={faults}>
      <form
        ref={frame}
        className={className}
        onInput={({ currentTarget: { dataset } }) => (dataset["typed"] = "")}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
      </form>
    </FormFaults>
  );
}

/** What the server says against the form and no field shows. */
export function RestOfFaults() {
  return <Fault error={useContext(FormFaults).rest} />;
}

/** The server's words about one field, below it. */
export function FaultOfField({ fault, id }: { fault: FieldFault | undefined; id?: string }) {
  const { show, fix } = useContext(FormFaults);
  useLayoutEffect(() => fault && show(fault), [show, fault]);
  if (!fault) return null;
  return (
    <p id={id} className="text-sm text-bad">
      {fault.message}
      {fix && <span className="block text-text">{fix}</span>}
    </p>
  );
}

function focusFirstFault(frame: HTMLElement | null): void {
  const field = frame?.querySelector<HTMLElement>("[aria-invalid=true]");
  field?.closest("details")?.setAttribute("open", "");
  field?.focus();
}

/** The mend of a single fault; beside several it does not say which one it is for. */
function fixOf(error: unknown): string | undefined {
  return error instanceof ApiError && error.problem.errors?.length === 1 ? error.problem.fix : undefined;
}

function restOf(error: unknown, shown: FieldFault[]): unknown {
  if (!(error instanceof ApiError)) return error;
  const { errors = [] } = error.problem;
  const rest = errors.filter((fault) => !shown.includes(fault));
  if (rest.length === errors.length) return error;
  if (rest.length === 0) return null;
  const detail = `${rest.map(({ path, message }) => `${path} ${message}`).join("; ")}.`;
  return new ApiError({ ...error.problem, detail });
}
