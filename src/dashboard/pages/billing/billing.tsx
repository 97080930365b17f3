import { Page } from "../../ui/page.tsx";

export function Billing() {
  return <Page title="Billing">{null}</Page>;
}
