import { FILES_TARGET } from "../trust/guard/guard.ts";
import type { Tool, ToolFile } from "../trust/guard/tool.ts";
import type { ReadFor } from "../files/reader.ts";
import type { Trust } from "../trust/shown/links.ts";
import { addFile, MAX_MADE_FILES } from "./made-files.ts";
import { makeTextFile, type Threads } from "./text-work.ts";

/** Lets a model hand over files of text with its answer. They go where the answer goes, and nowhere else. */
export function createFileTool(app: Threads, made: ToolFile[], trust: () => Trust, from: ReadFor): Tool {
  return {
    target: FILES_TARGET,
    name: "create_file",
    description: `Makes a file of text (txt, md, csv, html, json, ics, source code and the like) that is handed over with your answer, as an attachment. At most ${MAX_MADE_FILES} files and 1 MB each. Use it when a file is asked for, or when the result is a table or a document of its own.`,
    parameters: {
      type: "object",
      properties: {
        filename: {
          type: "string",
          minLength: 1,
          maxLength: 255,
          description: "With its ending: report.csv",
        },
        content: { type: "string", description: "The whole text of the file." },
        content_type: {
          type: "string",
          maxLength: 255,
          description: "Needed only if the name has no ending.",
        },
      },
      required: ["filename", "content"],
      additionalProperties: false,
    },
    read_only: true,
    of_circle: true,
    destructive: false,
    foreign: false,
    call: (args) => makeFile(app, made, args, { trust: trust(), from }),
  };
}

async function makeFile(
  app: Threads,
  made: ToolFile[],
  args: Record<string, unknown>,
  { trust, from }: { trust: Trust; from: ReadFor },
) {
  const { filename, content, content_type } = args as {
    filename: string;
    content: string;
    content_type?: string;
  };
  const file = await makeTextFile(
    app,
    { filename, text: content, ...(content_type === undefined ? {} : { content_type }) },
    trust,
    from,
  );
  const refusal = "refusal" in file ? file.refusal : addFile(made, file)[0];
  if (refusal !== undefined || "refusal" in file) return { ok: false, text: refusal ?? "", files: [] };
  const name = made.at(-1)?.filename ?? file.filename;
  return {
    ok: true,
    text: `Made ${name} (${file.bytes.byteLength} bytes). It goes with your answer.`,
    files: [],
  };
}
