import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import type { Endpoint, WebhookCounts } from "../../api/shapes.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { deliveriesKey, deliveryCounts } from "./queries.ts";

const LOOK_MS = 1_000;

/** Sends all failed deliveries again, after asking with their number, and shows how many have been sent. */
export function useReplay({ id, url }: Endpoint) {
  const queries = useQueryClient();
  const [asked, setAsked] = useState(false);
  /** The number of deliveries that are sent again. */
  const [sent, setSent] = useState<number>();
  const { data: counts, error } = useQuery({
    ...deliveryCounts(id),
    enabled: asked || sent !== undefined,
    refetchInterval: ({ state }) => (sent === undefined || state.data?.pending === 0 ? false : LOOK_MS),
  });
  const replay = useChange<void, { replayed: number }>({
    run: () => post<{ replayed: number }>(`/v1/webhooks/${id}/replay`, { since: 0 }),
    touches: [deliveriesKey(id), deliveryCounts(id).queryKey],
    done: ({ replayed }) => {
      setAsked(false);
      setSent(replayed);
    },
  });
  return {
    ask: () => {
      void queries.invalidateQueries(deliveryCounts(id));
      setSent(undefined);
      setAsked(true);
    },
    shown: (
      <>
        {sent !== undefined && <Sent of={sent} counts={counts} />}
        {asked && (
          <Confirm
            title="Send all failed ones again?"
            act={counts ? `Send ${counts.failed} again` : "Send them again"}
            cancel="Leave them"
            busy={replay.isPending || !counts}
            error={replay.error ?? error}
            onConfirm={() => (counts?.failed === 0 ? setAsked(false) : replay.mutate())}
            onClose={() => setAsked(false)}
          >
            <p className="wrap-anywhere">
              {counts
                ? counts.failed === 0
                  ? "Only tests failed, and they are not sent again."
                  : `${wordsFor(counts.failed)} of the last 30 days, to ${url}, oldest first.`
                : "Counting…"}
            </p>
            <p>Who takes them knows each by its event id, and may have had some of them already.</p>
          </Confirm>
        )}
        <Fault error={sent === undefined ? null : error} />
      </>
    ),
  };
}

function Sent({ of, counts }: { of: number; counts: WebhookCounts | undefined }) {
  const left = Math.min(of, counts?.pending ?? of);
  return (
    <Notice look={left === 0 ? "good" : "info"}>
      {left === 0
        ? `${wordsFor(of)}: each was sent again. The list says what came of it.`
        : `Sending again: ${of - left} of ${of} done.`}
      {left > 0 && <progress value={of - left} max={of} className="mt-1 block w-full accent-accent" />}
    </Notice>
  );
}

function wordsFor(deliveries: number): string {
  return deliveries === 1 ? "1 delivery" : `${deliveries} deliveries`;
}
