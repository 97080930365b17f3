import { useQuery } from "@tanstack/react-query";
import { Button } from "../../ui/button.tsx";
import { ServiceDns, serviceDns } from "../domains/service-dns.tsx";
import { Step, type StepState } from "./step.tsx";

/**
 * The step about the DNS, only for whoever runs the server. It may be left for later: the mail of the next steps
 * stays inside.
 */
export function DnsStep({ state, onDone }: { state: StepState; onDone: () => void }) {
  const { data } = useQuery(serviceDns);
  return (
    <Step
      title="Let mail find the server"
      state={state}
      again="Show it"
      summary={
        data &&
        (data.ready
          ? `Mail for ${data.domain} finds it.`
          : "Not done yet: mail from outside does not arrive.")
      }
    >
      <ServiceDns />
      <div>
        <Button look="main" onClick={onDone}>
          {data?.ready ? "Go on" : "Go on without it"}
        </Button>
      </div>
    </Step>
  );
}
