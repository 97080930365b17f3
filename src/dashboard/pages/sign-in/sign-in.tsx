import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { lastWay, serverFacts, type Way } from "../../api/session.ts";
import { Notice } from "../../ui/notice.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { ByCode } from "./by-code.tsx";
import { ByPassword } from "./by-password.tsx";
import { Doorstep } from "./doorstep.tsx";
import { NeedsCookies } from "./needs-cookies.tsx";

/** The page for signing in: by a code, which also makes an account, or by a password. */
export function SignIn() {
  const { email: invited } = useSearch({ from: "/sign-in" });
  // Whoever comes by an invitation has no password yet.
  const [way, setWay] = useState<Way>(invited === undefined ? lastWay : "code");
  const [email, setEmail] = useState(invited ?? "");
  const [opened, setOpened] = useState(true);
  return (
    <Doorstep
      title="Sign in"
      heading="Sign in to Mailwright"
      words="The mail server that does the work your mails ask for."
    >
      <ServerNotice />
      <NeedsCookies>
        <div className="rounded-xl border border-line bg-card p-5">
          <Tabs<Way>
            label="Ways to sign in"
            tabs={[
              { id: "code", title: "Code by mail" },
              { id: "password", title: "Password" },
            ]}
            chosen={way}
            onChoose={(chosen) => {
              setOpened(false);
              setWay(chosen);
            }}
          >
            {way === "code" ? (
              <ByCode opened={opened} email={email} onEmail={setEmail} />
            ) : (
              <ByPassword opened={opened} email={email} onEmail={setEmail} />
            )}
          </Tabs>
        </div>
      </NeedsCookies>
    </Doorstep>
  );
}

/** What strangers have to know of this server before they try. */
function ServerNotice() {
  const { data: server } = useQuery(serverFacts);
  if (server?.needs_setup)
    return (
      <Notice>
        Nobody has an account here yet. Do you run this server? Then open the setup link that it printed when
        it started.{" "}
        <Link to="/setup" className="underline">
          Where is it?
        </Link>
      </Notice>
    );
  if (server?.registration === "closed")
    return (
      <Notice>Only people who have an account can sign in. Ask whoever runs this server for one.</Notice>
    );
  return null;
}
