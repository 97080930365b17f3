import { useState } from "react";
import { useChange } from "../api/changes.ts";
import { faultOf, patch } from "../api/client.ts";
import { useMe } from "../api/session.ts";
import { Form } from "./form.tsx";
import { Card } from "./page.tsx";
import { useMoney } from "./money.ts";
import { TextField } from "./text-field.tsx";
import { useToast } from "./toast.tsx";
import { Unsaved } from "./unsaved.tsx";

interface BudgetProps {
  /** What may cost so much: "What models may cost for this inbox". */
  what: string;
  /** Where it is changed. */
  path: string;
  budget: number | null;
  touches: (readonly unknown[])[];
}

/**
 * An amount with a point or a comma before its cents. A comma before three digits may stand for thousands as well. A field of numbers
 * would leave the comma of "5,50" out in an English browser, and so take it for 550.
 */
const AMOUNT = String.raw`\d*\.\d+|\d+\.?|\d+,\d{1,2}`;

/** What models may cost in a month; the field follows the server until it is edited. */
export function Budget({ what, path, budget, touches }: BudgetProps) {
  const say = useToast();
  const { currency } = useMe();
  const money = useMoney();
  const [draft, setDraft] = useState<string>();
  const text = draft ?? budget?.toString() ?? "";
  const save = useChange({
    run: () => patch(path, { monthly_budget: text === "" ? null : Number(text.replace(",", ".")) }),
    touches,
    done: () => {
      setDraft(undefined);
      say(text === "" ? "Saved: no limit." : `Saved: ${money(Number(text.replace(",", ".")))} in a month.`);
    },
  });
  return (
    <Card title="Monthly budget">
      <Unsaved changed={draft !== undefined} />
      <Form change={save} act="Set the budget">
        <TextField
          label={`${what} in a month, in ${currency}`}
          hint="Left empty: without a limit. What could go beyond it is not asked and shows as limited in the activity; you are mailed when most of it is used. Months are those of UTC, and models whose price is not known are not held."
          fault={faultOf(save.error)("monthly_budget")}
          inputMode="decimal"
          autoComplete="off"
          pattern={AMOUNT}
          title="Digits alone, with a point or a comma before cents: 5.50"
          value={text}
          onChange={setDraft}
        />
      </Form>
    </Card>
  );
}
