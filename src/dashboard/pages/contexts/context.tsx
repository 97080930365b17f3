import { Page } from "../../ui/page.tsx";

export function Context() {
  return <Page title="Context">{null}</Page>;
}
