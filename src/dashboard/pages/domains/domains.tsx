import { Page } from "../../ui/page.tsx";

export function Domains() {
  return <Page title="Domains">{null}</Page>;
}
