/** A file that a run creates. */
export interface ToolFile {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

/** A place that built-in tools can write to, such as a page or a repository. */
export interface Place {
  id: string;
  /** Its title; null for one that this run created. */
  name: string | null;
}

/** A place that a built-in tool has read. */
export interface ReadPlace {
  /** Null where it may be any place that the connection can reach. */
  id: string | null;
  site: Site | undefined;
}

export interface Site {
  /** Host, with the port if it is not the default. */
  host: string;
  /** Whether a name may have more than two parts. */
  nested: boolean;
}

/** The outcome of a call, successful or not; both are shown to the model. */
export interface ToolOutcome {
  ok: boolean;
  /** Untrusted text. */
  text: string;
  files: ToolFile[];
  /**
   * For built-in tools only: the part of `text` that no model has written, whose addresses an answer may have; without it, all
   * of it.
   */
  known?: string;
  /** Whether the call was made with unknown result: the answer was lost, or unreadable. */
  unanswered?: boolean;
  /** Whether the server of the tool, and not the tool, has failed. */
  of_server?: boolean;
  /** For built-in tools only: places found, from structured fields of the answer. */
  places?: Place[];
  /** For built-in tools only: places read besides those in the arguments, as `id` of a ReadPlace. */
  read?: (string | null)[];
}

/** A tool that may be offered to a model. */
export interface Tool {
  /** The target it belongs to, as instructions name it: `notes`, `mcp:calendar`. */
  target: string;
  /** Its name within the target. */
  name: string;
  description: string;
  /** JSON Schema of its arguments, an object. */
  parameters: Record<string, unknown>;
  /** Whether its author says that it only reads; without a statement it counts as writing. */
  read_only: boolean;
  /** Whether its author says that it may delete or overwrite. */
  destructive: boolean;
  /** Whether its name suggests that, where its author says nothing. */
  may_destroy?: boolean;
  /** Only of others' tools: whether it adds something and changes nothing, by its author's word or else by its name. */
  adds?: boolean;
  /** Arguments that choose where something is read, or where it is written, and so who may read it. */
  places?: string[];
  /** Whether everything it reads was written by people that the account has admitted. */
  of_circle?: boolean;
  /** The names of its arguments for a place and for the number, such as an issue's, that it writes to there. */
  numbered?: { place: string; number: string } | undefined;
  /**
   * Returns the arguments with text that neither notifies anybody whom the trusted text does not name (`@name`), nor is
   * a command to a bot: for calls that others may have caused.
   */
  inert?: ((args: Record<string, unknown>, trusted_text: string) => Record<string, unknown>) | undefined;
  /**
   * Arguments whose places people name by title, with a function that finds places whose titles contain certain words:
   * each as a line of text, or an error.
   */
  titled?:
    | { args: string[]; called: (words: string, signal: AbortSignal) => Promise<ToolOutcome> }
    | undefined;
  /** The site where places like `owner/name` have their pages. */
  site?: Site | undefined;
  /** Whether its description comes from an external server, and so is untrusted text. */
  foreign: boolean;
  /** Makes a call with arguments that fit `parameters`. Rejects only when `signal` aborts, with its reason. */
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<ToolOutcome>;
}

/**
 * The tools of one server or integration with the number of tools left out, or a sentence on why there are none and
 * what to do.
 */
export type ToolListing = { ok: true; tools: Tool[]; left_out: number } | { ok: false; message: string };
