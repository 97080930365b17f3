import { Page } from "../../ui/page.tsx";

export function Endpoint() {
  return <Page title="Endpoint">{null}</Page>;
}
