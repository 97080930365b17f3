/** A file that a run makes. */
export interface ToolFile {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

/** Somewhere that our own tools can write to. */
export interface Place {
  id: string;
  /** What its owner calls it; null for what this very run has made. */
  name: string | null;
}

/** Where a tool of ours has read. */
export interface ReadPlace {
  /** Null where it may have been anywhere that the connection opens. */
  id: string | null;
  site: Site | undefined;
}

export interface Site {
  /** With its port, if it is not the usual one. */
  host: string;
  /** Whether a name may have more than two parts. */
  nested: boolean;
}

/** What came of a call, good or bad; both are the model's to read. */
export interface ToolOutcome {
  ok: boolean;
  /** Untrusted text. */
  text: string;
  files: ToolFile[];
  /** Whether the call was made and nobody knows what came of it: its answer was lost, or could not be read. */
  unanswered?: boolean;
  /** Whether the server of the tool, and not the tool, has failed. */
  of_server?: boolean;
  /** Only of our own tools, and from what the other side says in its own fields. */
  places?: Place[];
  /** Only of our own tools: where it has read besides the places in its arguments, as `id` of a ReadPlace. */
  read?: (string | null)[];
}

/** Something that a model may be offered to call. */
export interface Tool {
  /** Where it belongs, as an instruction names it: `notes`, `mcp:calendar`. */
  target: string;
  /** Its name there. */
  name: string;
  description: string;
  /** JSON Schema of its arguments, an object. */
  parameters: Record<string, unknown>;
  /** Only if its author says so; silence means that it may change something. */
  read_only: boolean;
  /** Whether its author says that it may delete or overwrite. */
  destructive: boolean;
  /** Whether it may do so by its name, where its author says nothing. */
  may_destroy?: boolean;
  /** Arguments that choose where something is read, or where it is written, and so who may read it. */
  places?: string[];
  /** Whether only people whom its account has let in write what it reads. */
  of_circle?: boolean;
  /** Its arguments for a place and for the number there of what it writes to, such as an issue. */
  numbered?: { place: string; number: string } | undefined;
  /**
   * Its arguments with nothing in their prose that calls somebody whom the trusted text does not name, or that a machine
   * takes for an order: for a call that others may be behind.
   */
  inert?: ((args: Record<string, unknown>, trusted_text: string) => Record<string, unknown>) | undefined;
  /** Arguments that people give by a title, and how to find whatever has certain words in its title: its places, each a line of the text, or why not. */
  titled?:
    | { args: string[]; called: (words: string, signal: AbortSignal) => Promise<ToolOutcome> }
    | undefined;
  /** Where places like `owner/name` have their pages. */
  site?: Site | undefined;
  /** Whether others wrote its description, which then is untrusted text. */
  foreign: boolean;
  /** Arguments fit `parameters`. Rejects only when `signal` aborts, with its reason. */
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<ToolOutcome>;
}

/** The tools of one server or integration and how many more could not be offered, or a sentence about why there are none and what would mend it. */
export type ToolListing = { ok: true; tools: Tool[]; left_out: number } | { ok: false; message: string };
