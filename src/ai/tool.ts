/** A file that a run makes. */
export interface ToolFile {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

/** What came of a call, good or bad; both are the model's to read. */
export interface ToolOutcome {
  ok: boolean;
  /** Untrusted text. */
  text: string;
  files: ToolFile[];
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
  /** Whether others wrote its description, which then is untrusted text. */
  foreign: boolean;
  /** Arguments fit `parameters`. Rejects only when `signal` aborts, with its reason. */
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<ToolOutcome>;
}

/** The tools of one server or integration, or a sentence about why there are none and what would mend it. */
export type ToolListing = { ok: true; tools: Tool[] } | { ok: false; message: string };
