import { Page } from "../../ui/page.tsx";

export function Connections() {
  return <Page title="Connections">{null}</Page>;
}
