import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { connectionList } from "../../api/lists.ts";
import type { Connection } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { Toggle } from "../../ui/field.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";

const EACH_CHANGE = "*";

/** Whether the owner is asked before the tools of a connection change something, or before some that are named. */
export function AskFirst({ connection: { id, ask_tools, unconfirmed } }: { connection: Connection }) {
  const change = useChange<string[]>({
    run: (names) => patch(`/connections/${id}`, { ask_tools: names }),
    touches: [connectionList.queryKey],
  });
  const confirm = useChange({
    run: () => patch(`/connections/${id}`, {}),
    touches: [connectionList.queryKey],
  });
  const others = ask_tools.filter((name) => name !== EACH_CHANGE);
  return (
    <Card title="Ask me first">
      <div className="grid gap-3">
        {unconfirmed && (
          <Notice look="warn">
            <div className="grid justify-items-start gap-2">
              An API key has made this connection, or changed its address. Until you confirm that it leads
              where you want, each change by its tools waits for your yes, if you have marked any tool at all.
              <Button busy={confirm.isPending} onClick={() => confirm.mutate()}>
                It is mine
              </Button>
              <Fault error={confirm.error} />
            </div>
          </Notice>
        )}
        <Fault error={change.error} />
        <Toggle
          label="Before each change"
          hint="What its tools would change waits for your yes, whoever asks for it and however. You are mailed what each would do."
          checked={ask_tools.includes(EACH_CHANGE)}
          disabled={change.isPending}
          onChange={(on) => change.mutate(on ? [...others, EACH_CHANGE] : others)}
        />
        {others.map((name) => (
          <Toggle
            key={name}
            label={name}
            hint="Each call of this tool waits for your yes."
            checked
            disabled={change.isPending}
            onChange={() => change.mutate(ask_tools.filter((one) => one !== name))}
          />
        ))}
      </div>
    </Card>
  );
}
