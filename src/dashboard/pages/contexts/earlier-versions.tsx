import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import { contextList } from "../../api/lists.ts";
import type { Context, ContextVersion, ContextVersionCard } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { DeleteButton } from "../../ui/delete.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { LongText } from "../../ui/long-text.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toast.tsx";

interface VersionsProps {
  context: Context;
  /** Whether the page has changes that a restored version would take away. */
  unsaved: boolean;
  onRestored: (context: Context) => void;
}

/** What a context said before; each version can be read, and be what it says again. */
export function EarlierVersions({ context, ...rest }: VersionsProps) {
  const [shown, setShown] = useState<ContextVersionCard>();
  const { data = [], error } = useQuery({
    queryKey: versionsKey(context),
    queryFn: ({ signal }) => get<ContextVersionCard[]>(`/contexts/${context.id}/versions`, signal),
    enabled: context.version > 1,
  });
  const earlier = data.filter(({ current }) => !current);
  if (earlier.length === 0) return error ? <Fault error={error} /> : null;
  return (
    <Card title="Earlier versions">
      <ul className="-mx-2 max-h-72 overflow-y-auto">
        {earlier.map((one) => (
          <li key={one.version}>
            <button
              type="button"
              onClick={() => setShown(one)}
              className="flex w-full flex-wrap justify-between gap-x-3 rounded-lg px-2 py-1.5 text-left hover:bg-hover"
            >
              <span className="underline">Version {one.version}</span>
              <span className="text-sm text-soft">
                <Time at={one.created} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      {shown && <Version context={context} {...rest} card={shown} onClose={() => setShown(undefined)} />}
    </Card>
  );
}

interface VersionProps extends VersionsProps {
  card: ContextVersionCard;
  onClose: () => void;
}

function Version({ context, unsaved, onRestored, card: { version, title }, onClose }: VersionProps) {
  const path = `/contexts/${context.id}/versions/${version}`;
  const say = useToast();
  const { data, error } = useQuery({
    queryKey: ["context-version", context.id, version],
    queryFn: ({ signal }) => get<ContextVersion>(path, signal),
  });
  const touches = [contextList.queryKey, ["context", context.id]];
  const restore = useChange({
    run: () => post<Context>(`${path}/restore`),
    touches,
    done: (now) => {
      onRestored(now);
      say(`The context says again what version ${version} said.`);
      onClose();
    },
  });
  return (
    <Dialog title={`Version ${version}: ${title}`} onClose={onClose}>
      <div className="grid gap-4">
        <Fault error={error ?? restore.error} />
        {data ? (
          <LongText
            label={`Version ${version}`}
            text={data.body}
            className="max-h-96 p-3 font-sans text-sm"
          />
        ) : (
          !error && <Loading what="the version" />
        )}
        {unsaved && (
          <p className="text-sm text-soft">
            The page has changes that are not saved. Save them before you restore another version.
          </p>
        )}
        <div className="flex flex-wrap justify-end gap-2">
          <DeleteButton
            title={`Delete version ${version}?`}
            act="Delete the version"
            path={path}
            touches={[versionsKey(context)]}
            done={onClose}
          >
            <p>What the context says now stays as it is.</p>
          </DeleteButton>
          <Button look="main" disabled={unsaved} busy={restore.isPending} onClick={() => restore.mutate()}>
            Restore
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function versionsKey({ id, version }: Context) {
  return ["context", id, "versions", version];
}
