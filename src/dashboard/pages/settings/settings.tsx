import { session, useMe } from "../../api/session.ts";
import { Budget } from "../../ui/budget.tsx";
import { Page } from "../../ui/page.tsx";
import { AccountEnd } from "./account-end.tsx";
import { Keys } from "./keys.tsx";
import { Look } from "./look.tsx";
import { Password } from "./password.tsx";
import { Profile } from "./profile.tsx";
import { SecurityLog } from "./security-log.tsx";
import { Sessions } from "./sessions.tsx";

export function Settings() {
  return (
    <Page title="Settings" intro="Your account, and the keys that programs use in your name.">
      <Profile />
      <Budget
        what="What models may cost for all inboxes"
        path="/auth/profile"
        budget={useMe().monthly_budget}
        touches={[session.queryKey]}
      />
      <Look />
      <Password />
      <Keys />
      <Sessions />
      <SecurityLog />
      <AccountEnd />
    </Page>
  );
}
