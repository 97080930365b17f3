import { Page } from "../../ui/page.tsx";

export function Contexts() {
  return <Page title="Contexts">{null}</Page>;
}
