import { useQueryClient } from "@tanstack/react-query";
import { RotateCcw, Tag, Trash2, X } from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { get, patch, post, remove } from "../../api/client.ts";
import type { GrowingList } from "../../api/growing-list.ts";
import type { Activity, Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/notice.tsx";
import { UNDO_MS, useToast } from "../../ui/toast.tsx";
import { dropFromLists } from "./drop-from-lists.ts";
import { SelectAll } from "./select-all.tsx";
import { TagDialog } from "./tag-dialog.tsx";
import { useOneByOne } from "./one-by-one.ts";

interface SelectionProps {
  chosen: Activity[];
  /** The list that they are chosen from. */
  list: GrowingList<Activity>;
  onChoose: (messages: Activity[]) => void;
  onLeave: () => void;
}

/**
 * The buttons for several messages. Each message is done by itself, so that a refusal of one does not keep the others
 * from it.
 */
export function Selection({ chosen, list, onChoose, onLeave }: SelectionProps) {
  const queries = useQueryClient();
  const say = useToast();
  const work = useOneByOne();
  const [tagging, setTagging] = useState(false);
  const onClear = (): void => onChoose([]);
  const failed = chosen.filter(({ status, may_retry }) => status === "failed" || may_retry !== null);

  const erase = async (): Promise<void> => {
    const ids = chosen.map(({ message_id }) => message_id);
    const done = await work.forEach("Deleting", ids, (id) => remove(`/messages/${id}`));
    dropFromLists(queries, done);
    onClear();
    if (done.length === 0) return;
    const undo = async (): Promise<void> => {
      for (const id of done) await post(`/messages/${id}/restore`);
      await queries.invalidateQueries({ queryKey: ["messages"] });
    };
    say(`${countOf(done.length)} deleted.`, undo, UNDO_MS);
  };

  const retry = async (): Promise<void> => {
    // All that were chosen: the server says of each that is not tried again why.
    const ids = chosen.map(({ message_id }) => message_id);
    const done = await work.forEach("Trying again", ids, (id) => post(`/messages/${id}/retry`));
    onClear();
    if (done.length > 0) say(`${countOf(done.length)} tried again. New ones are at the top.`);
  };

  const { progress, faults } = work;
  const busy = progress !== undefined;
  return (
    <div className="sticky top-16 z-10 grid gap-2 rounded-xl border border-line bg-raised p-3 shadow-lg md:top-3">
      <div className="flex flex-wrap items-center gap-2">
        <p role="status" className="mr-auto text-sm font-medium">
          {progress
            ? `${progress.act} ${progress.done + 1} of ${progress.of}…`
            : `${chosen.length === 0 ? "None" : chosen.length} chosen`}
        </p>
        <SelectAll list={list} disabled={busy} onChoose={onChoose} />
        <Button icon={<Trash2 />} disabled={chosen.length === 0} busy={busy} onClick={() => void erase()}>
          Delete
        </Button>
        <Button icon={<RotateCcw />} disabled={failed.length === 0} busy={busy} onClick={() => void retry()}>
          Try again{failed.length > 0 && ` (${failed.length})`}
        </Button>
        <Button icon={<Tag />} disabled={chosen.length === 0} busy={busy} onClick={() => setTagging(true)}>
          Tag
        </Button>
        <Button look="quiet" icon={<X />} onClick={onLeave}>
          Done
        </Button>
      </div>
      {faults.length > 0 && (
        <Notice look="warn">
          {faults.map((words) => (
            <p key={words}>{words}</p>
          ))}
        </Notice>
      )}
      {tagging && <TagThem work={work} chosen={chosen} onDone={onClear} onClose={() => setTagging(false)} />}
    </div>
  );
}

interface TagThemProps {
  work: ReturnType<typeof useOneByOne>;
  chosen: Activity[];
  onDone: () => void;
  onClose: () => void;
}

function TagThem({ work, chosen, onDone, onClose }: TagThemProps) {
  const say = useToast();
  const tag = useChange<string, string[]>({
    run: (word) => {
      const ids = chosen.map(({ message_id }) => message_id);
      return work.forEach("Tagging", ids, async (id) => {
        // Read again: somebody else may have tagged it meanwhile.
        const { tags } = await get<Story>(`/messages/${id}`);
        await patch(`/messages/${id}`, { tags: [...tags, word] });
      });
    },
    touches: [],
    done: (done) => {
      onClose();
      onDone();
      if (done.length > 0) say(`${countOf(done.length)} tagged.`);
    },
  });
  return <TagDialog title="Tag these messages" act="Tag them" change={tag} onClose={onClose} />;
}

function countOf(messages: number): string {
  return messages === 1 ? "1 message is" : `${messages} messages are`;
}
