import { Page } from "../../ui/page.tsx";

export function Connection() {
  return <Page title="Connection">{null}</Page>;
}
