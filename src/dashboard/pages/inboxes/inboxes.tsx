import { Page } from "../../ui/page.tsx";

export function Inboxes() {
  return <Page title="Inboxes">{null}</Page>;
}
