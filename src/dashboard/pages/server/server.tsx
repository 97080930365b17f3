import { useState } from "react";
import { Page } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Accounts } from "./accounts.tsx";
import { CaptureBox } from "./capture-box.tsx";
import { Overview } from "./overview.tsx";
import { Queue } from "./queue.tsx";

const TABS = [
  { id: "overview", title: "At a glance" },
  { id: "accounts", title: "Accounts" },
  { id: "queue", title: "Queue" },
  { id: "mail", title: "Outgoing mail" },
] as const;
type Tab = (typeof TABS)[number]["id"];

/** For who runs the server. */
export function Server() {
  const [tab, setTab] = useState<Tab>("overview");
  return (
    <Page title="Server" intro="How the whole server is, for those who look after it.">
      <Tabs<Tab> label="About the server" tabs={[...TABS]} chosen={tab} onChoose={setTab}>
        {tab === "overview" && <Overview />}
        {tab === "accounts" && <Accounts />}
        {tab === "queue" && <Queue />}
        {tab === "mail" && <CaptureBox />}
      </Tabs>
    </Page>
  );
}
