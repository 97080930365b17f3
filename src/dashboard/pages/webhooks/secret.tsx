import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { get, post } from "../../api/client.ts";
import type { Endpoint } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";

/**
 * The signing secret of an endpoint: hidden until it is wanted. After a change, the former one signs as well for a
 * day.
 */
export function Secret({ endpoint }: { endpoint: Endpoint }) {
  const say = useToast();
  const path = `/v1/webhooks/${endpoint.id}`;
  const [secret, setSecret] = useState<string>();
  const [asked, setAsked] = useState(false);
  const show = useChange<void, { secret: string }>({
    run: () => get<{ secret: string }>(`${path}/secret`),
    touches: [],
    done: (made) => setSecret(made.secret),
  });
  const rotate = useChange<void, { secret: string }>({
    run: () => post<{ secret: string }>(`${path}/rotate-secret`),
    touches: [],
    done: (made) => {
      setSecret(made.secret);
      setAsked(false);
      say("Here is the new secret.");
    },
  });
  return (
    <Card
      title="Secret"
      actions={
        <>
          {secret === undefined ? (
            <Button busy={show.isPending} onClick={() => show.mutate()}>
              Show the secret
            </Button>
          ) : (
            <Button onClick={() => setSecret(undefined)}>Hide the secret</Button>
          )}
          <Button onClick={() => setAsked(true)}>New secret</Button>
        </>
      }
    >
      <div className="grid justify-items-start gap-3">
        <p className="text-sm text-soft">
          It signs every delivery, so that your program knows who calls.{" "}
          <a href="/docs/webhooks" className="text-accent underline">
            The guide
          </a>{" "}
          has the check ready for several languages.
        </p>
        {secret && <Copyable text={secret} label="Copy the secret" />}
        <Fault error={show.error} />
      </div>
      {asked && (
        <Confirm
          title="Make a new secret?"
          act="Make a new secret"
          busy={rotate.isPending}
          error={rotate.error}
          onConfirm={() => rotate.mutate()}
          onClose={() => setAsked(false)}
        >
          <p>
            For 24 hours the secret you have signs as well, so you can change your program without a gap.
            After that only the new one does.
          </p>
        </Confirm>
      )}
    </Card>
  );
}
