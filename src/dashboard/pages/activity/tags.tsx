import { Plus, X } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import type { Story } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { TagDialog } from "./tag-dialog.tsx";

/** The tags of a message: each can be taken away, and others given. */
export function Tags({ story: { message_id, tags } }: { story: Story }) {
  const [adding, setAdding] = useState(false);
  const change = useChange<string[]>({
    run: (next) => patch(`/messages/${message_id}`, { tags: next }),
    touches: [["story", message_id]],
    done: () => setAdding(false),
  });
  return (
    <div className="flex flex-wrap items-center gap-2">
      {tags.map((tag) => (
        <Badge key={tag}>
          #{tag}
          <button
            type="button"
            aria-label={`Take away #${tag}`}
            title={`Take away #${tag}`}
            className="-my-1 -mr-1.5 rounded-full p-1 hover:text-text"
            onClick={() => change.mutate(tags.filter((other) => other !== tag))}
          >
            <X aria-hidden className="size-3.5" />
          </button>
        </Badge>
      ))}
      <Button look="quiet" icon={<Plus />} onClick={() => setAdding(true)}>
        Add a tag
      </Button>
      {adding ? (
        <TagDialog
          title="Tag this message"
          act="Tag it"
          change={{ ...change, mutate: (word) => change.mutate([...tags, word]) }}
          onClose={() => {
            change.reset();
            setAdding(false);
          }}
        />
      ) : (
        <Fault error={change.error} />
      )}
    </div>
  );
}
