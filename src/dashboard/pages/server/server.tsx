import { useLocation, useNavigate } from "@tanstack/react-router";
import { Page } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Accounts } from "./accounts.tsx";
import { Backups } from "./backups.tsx";
import { CaptureBox } from "./capture-box.tsx";
import { Doctor } from "./doctor.tsx";
import { Overview } from "./overview.tsx";
import { Queue } from "./queue.tsx";

const TABS = [
  { id: "overview", title: "At a glance" },
  { id: "check-up", title: "Check-up" },
  { id: "accounts", title: "Accounts" },
  { id: "queue", title: "Waiting work" },
  { id: "mail", title: "Outgoing mail" },
  { id: "backups", title: "Backups" },
] as const;
type Tab = (typeof TABS)[number]["id"];

/** The page for whoever runs the server. Its address names the open tab. */
export function Server() {
  const hash = useLocation({ select: (place) => place.hash });
  const navigate = useNavigate();
  const tab = TABS.find(({ id }) => id === hash)?.id ?? "overview";
  return (
    <Page title="Server" intro="How the whole server is, for those who look after it.">
      <Tabs<Tab>
        label="About the server"
        tabs={[...TABS]}
        chosen={tab}
        onChoose={(id) => void navigate({ to: "/server", hash: id, replace: true })}
      >
        {tab === "overview" && <Overview />}
        {tab === "check-up" && <Doctor />}
        {tab === "accounts" && <Accounts />}
        {tab === "queue" && <Queue />}
        {tab === "mail" && <CaptureBox />}
        {tab === "backups" && <Backups />}
      </Tabs>
    </Page>
  );
}
