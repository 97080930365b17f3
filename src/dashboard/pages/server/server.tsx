import { Page } from "../../ui/page.tsx";

export function Server() {
  return <Page title="Server">{null}</Page>;
}
