import { Empty, Page } from "../../ui/page.tsx";

export function Activity() {
  return (
    <Page title="Activity" intro="Every mail and call, and what became of it.">
      <Empty title="Nothing yet" />
    </Page>
  );
}
