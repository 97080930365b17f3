import { Page } from "../../ui/page.tsx";

export function Conversations() {
  return <Page title="Conversations">{null}</Page>;
}
