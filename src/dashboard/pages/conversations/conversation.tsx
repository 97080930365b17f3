import { Page } from "../../ui/page.tsx";

export function Conversation() {
  return <Page title="Conversation">{null}</Page>;
}
