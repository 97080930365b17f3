import { t } from "elysia";

export const HighlightShape = t.Object(
  {
    field: t.Union(
      ["subject", "instruction", "result", "material", "files", "sender", "recipient"].map((name) =>
        t.Literal(name),
      ),
    ),
    text: t.String({ description: "A part of it, as plain text.", examples: ["Your invoice is paid."] }),
    spans: t.Array(t.Array(t.Integer({ minimum: 0 }), { minItems: 2, maxItems: 2 }), {
      description: "From where to where in `text` something was found, in units of UTF-16.",
      examples: [[[5, 12]]],
    }),
  },
  { $id: "Highlight", description: "Where a search has found something." },
);
