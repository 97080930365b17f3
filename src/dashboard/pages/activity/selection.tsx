import { useQueryClient } from "@tanstack/react-query";
import { RotateCcw, Tag, Trash2, X } from "lucide-react";
import { useState } from "react";
import { get, patch, post, remove } from "../../api/client.ts";
import type { Activity, Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Notice, errorWords } from "../../ui/notice.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { UNDO_MS, useToast } from "../../ui/toast.tsx";
import { dropFromLists } from "./drop-from-lists.ts";

interface Progress {
  /** Such as "Deleting". */
  act: string;
  done: number;
  of: number;
}

interface SelectionProps {
  chosen: Activity[];
  onClear: () => void;
  onLeave: () => void;
}

/**
 * The buttons for several messages. Each message is done by itself, so that a refusal of one does not keep the others
 * from it.
 */
export function Selection({ chosen, onClear, onLeave }: SelectionProps) {
  const queries = useQueryClient();
  const say = useToast();
  const [progress, setProgress] = useState<Progress>();
  const [faults, setFaults] = useState<string[]>([]);
  const [tagging, setTagging] = useState(false);
  const failed = chosen.filter(({ may_retry }) => may_retry !== null);

  async function forEach(
    act: string,
    ids: string[],
    work: (id: string) => Promise<unknown>,
  ): Promise<string[]> {
    const done: string[] = [];
    const said = new Set<string>();
    for (const [index, id] of ids.entries()) {
      setProgress({ act, done: index, of: ids.length });
      try {
        await work(id);
        done.push(id);
      } catch (error) {
        said.add(errorWords(error));
      }
    }
    setProgress(undefined);
    setFaults(
      said.size === 0 ? [] : [`${ids.length - done.length} of ${ids.length} stayed as they were.`, ...said],
    );
    return done;
  }

  const erase = async (): Promise<void> => {
    const ids = chosen.map(({ message_id }) => message_id);
    const done = await forEach("Deleting", ids, (id) => remove(`/messages/${id}`));
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
    const ids = failed.map(({ message_id }) => message_id);
    const done = await forEach("Trying again", ids, (id) => post(`/messages/${id}/retry`));
    onClear();
    if (done.length > 0) say(`${countOf(done.length)} tried again. New ones are at the top.`);
  };

  const tag = async (word: string): Promise<void> => {
    setTagging(false);
    const ids = chosen.map(({ message_id }) => message_id);
    const done = await forEach("Tagging", ids, async (id) => {
      // Read again: somebody else may have tagged it meanwhile.
      const { tags } = await get<Story>(`/messages/${id}`);
      await patch(`/messages/${id}`, { tags: [...tags, word] });
    });
    onClear();
    if (done.length > 0) say(`${countOf(done.length)} tagged.`);
  };

  const busy = progress !== undefined;
  return (
    <div className="sticky top-16 z-10 grid gap-2 rounded-xl border border-line bg-raised p-3 shadow-lg md:top-3">
      <div className="flex flex-wrap items-center gap-2">
        <p role="status" className="mr-auto text-sm font-medium">
          {progress
            ? `${progress.act} ${progress.done + 1} of ${progress.of}…`
            : `${chosen.length === 0 ? "None" : chosen.length} chosen`}
        </p>
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
      {tagging && <TagDialog onTag={(word) => void tag(word)} onClose={() => setTagging(false)} />}
    </div>
  );
}

function countOf(messages: number): string {
  return messages === 1 ? "1 message is" : `${messages} messages are`;
}

function TagDialog({ onTag, onClose }: { onTag: (word: string) => void; onClose: () => void }) {
  const [word, setWord] = useState("");
  return (
    <Dialog title="Tag these messages" onClose={onClose}>
      <Form
        change={{ mutate: () => onTag(word.trim()), isPending: false, error: null }}
        act="Tag them"
        disabled={word.trim() === ""}
        onCancel={onClose}
      >
        <TextField
          label="Tag"
          hint="One word, such as #paid. You find them by it in the filter “Tag”."
          required
          maxLength={100}
          autoCapitalize="none"
          value={word}
          onChange={setWord}
        />
      </Form>
    </Dialog>
  );
}
