import { Page } from "../../ui/page.tsx";

export function Webhooks() {
  return <Page title="Webhooks">{null}</Page>;
}
