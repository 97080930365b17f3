import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get } from "../../api/client.ts";
import type { DeliveryDetail, Endpoint } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";
import { deliveryList } from "./queries.ts";
import { checkSignature, type Verdict } from "./signature.ts";

const EVENT_ID = /evt_[0-9a-z]{26}/;

/** Tells somebody whose program refuses a delivery, or takes a forged one, what is wrong with it. */
export function SignatureCheck({ endpoint }: { endpoint: Endpoint }) {
  const [pasted, setPasted] = useState({ headers: "", body: "", secret: "" });
  const { data: deliveries = [] } = useQuery(deliveryList(endpoint.id));
  const secretOf = () => get<{ secret: string }>(`/v1/webhooks/${endpoint.id}/secret`);
  /** The body that was sent, if the list of deliveries still has it. */
  const sentBody = async (): Promise<string | undefined> => {
    const event_id = EVENT_ID.exec(`${pasted.headers} ${pasted.body}`)?.[0];
    const delivery = deliveries.find((one) => one.event_id === event_id);
    if (!delivery) return undefined;
    const path = `/v1/webhooks/${endpoint.id}/deliveries/${delivery.id}`;
    return (await get<DeliveryDetail>(path)).request.body;
  };
  const check = useMutation<Verdict, unknown, void>({
    mutationFn: async () => {
      const [{ secret: endpoint_secret }, sent_body] = await Promise.all([secretOf(), sentBody()]);
      return checkSignature(pasted, { now: Date.now() / 1_000, endpoint_secret, sent_body });
    },
  });
  const fill = useMutation({ mutationFn: secretOf, onSuccess: ({ secret }) => set({ secret }) });
  const set = (change: Partial<typeof pasted>): void => {
    check.reset();
    setPasted((before) => ({ ...before, ...change }));
  };
  if (!window.isSecureContext) return <Insecure />;
  return (
    <Card title="Is a call genuine?">
      <Form change={check} act="Check it">
        <p className="text-sm text-soft">
          Paste what your program got. Your browser computes whether this server signed it, and if it does not
          fit, why.
        </p>
        <Field label="Headers" hint="All of them, or only Service-Signature.">
          <TextArea
            required
            rows={4}
            spellCheck={false}
            className="font-mono text-sm!"
            value={pasted.headers}
            onChange={(event) => set({ headers: event.target.value })}
          />
        </Field>
        <Field label="Body" hint="As it came in, before anything reads it as JSON.">
          <TextArea
            rows={4}
            spellCheck={false}
            className="font-mono text-sm!"
            value={pasted.body}
            onChange={(event) => set({ body: event.target.value })}
          />
        </Field>
        <div className="flex flex-wrap items-end gap-2">
          <div className="min-w-0 flex-1 basis-64">
            <Field label="Secret">
              <Input
                required
                autoComplete="off"
                spellCheck={false}
                className="font-mono text-sm!"
                placeholder="whsec_…"
                value={pasted.secret}
                onChange={(event) => set({ secret: event.target.value })}
              />
            </Field>
          </div>
          <Button busy={fill.isPending} onClick={() => fill.mutate()}>
            Take this endpoint’s
          </Button>
        </div>
        {check.data && <VerdictWords verdict={check.data} />}
      </Form>
    </Card>
  );
}

function Insecure() {
  return (
    <Card title="Is a call genuine?">
      <Notice look="warn">
        Browsers compute signatures only on pages that come over https, or from the machine itself. Open the
        dashboard there to check one.
      </Notice>
    </Card>
  );
}

function VerdictWords({ verdict }: { verdict: Verdict }) {
  switch (verdict.kind) {
    case "genuine":
      return (
        <Notice look="good">
          Genuine: this secret signed exactly this body, <Time at={verdict.signed_at} />.
        </Notice>
      );
    case "too_old":
      return (
        <Notice look="warn">
          Too old: the signature fits, but it was made <Time at={verdict.signed_at} />. Somebody may send an
          old call once more, so a program should refuse what is older than five minutes. If yours refuses
          fresh ones, set its clock.
        </Notice>
      );
    case "too_early":
      return (
        <Notice look="warn">
          From the future: the signature fits, but it says it was made <Time at={verdict.signed_at} />. One of
          the two clocks is wrong.
        </Notice>
      );
    case "changed_body":
      return <Notice look="bad">Changed body: this is not what was signed. {verdict.how}</Notice>;
    case "other_secret":
      return <Notice look="bad">Other secret: this one did not sign it. {verdict.how}</Notice>;
    case "no_signature":
      return (
        <Notice look="bad">
          No signature: there is no header Service-Signature with t= and v1= in what you pasted. A call
          without one did not come from here.
        </Notice>
      );
    default:
      return (
        <Notice look="bad">
          Not genuine as it stands: the body was changed, or another secret signed it. Which of the two cannot
          be told, as the log has no such delivery.
        </Notice>
      );
  }
}
