import { Page } from "../../ui/page.tsx";

export function Recipes() {
  return <Page title="Recipes">{null}</Page>;
}
