import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { faultOf, post } from "../../api/client.ts";
import { rememberWay, serverFacts, session } from "../../api/session.ts";
import type { Me } from "../../api/shapes.ts";
import { BUTTON } from "../../ui/button.tsx";
import { takeZone } from "../../api/own-zone.ts";
import { Form } from "../../ui/form.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { EmailField, PasswordField, TextField } from "../../ui/text-field.tsx";
import { Doorstep } from "../sign-in/doorstep.tsx";
import { NeedsCookies } from "../sign-in/needs-cookies.tsx";

/** The page behind the link that a new server prints at its start. It makes the account that runs the server. */
export function Setup() {
  const { token } = useSearch({ from: "/setup" });
  const { data: server, error, refetch } = useQuery(serverFacts);
  if (error)
    return (
      <Doorstep title="Set up" heading="Set up Mailwright" words="Something is in the way.">
        <Fault error={error} retry={() => void refetch()} />
      </Doorstep>
    );
  if (!server) return <Loading what="the state of the server" />;
  if (!server.needs_setup) return <AlreadySetUp />;
  return token ? <FirstAccount token={token} /> : <WhereIsTheLink />;
}

function FirstAccount({ token }: { token: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const make = useMutation({
    mutationFn: async () =>
      takeZone(await post<Me>("/setup", { token, email, password, ...(name ? { name } : {}) })),
    onSuccess: async (me) => {
      rememberWay("password");
      queries.setQueryData(session.queryKey, me);
      // The change lasts until the next page is shown, so that no second account can be made.
      await navigate({ to: "/welcome" });
    },
  });
  const fault = faultOf(make.error);
  return (
    <Doorstep
      title="Set up"
      heading="Your server is running"
      words="Make the account that looks after it. Your first answer is two minutes away."
    >
      <NeedsCookies>
        <div className="rounded-xl border border-line bg-card p-5">
          <Form change={make} act="Make the account">
            <EmailField
              autoFocus
              hint="What you write from here commands your inboxes. It cannot be changed later."
              fault={fault("email")}
              value={email}
              onChange={setEmail}
            />
            <TextField
              label="Name"
              hint="May stay empty."
              fault={fault("name")}
              maxLength={100}
              autoComplete="name"
              value={name}
              onChange={setName}
            />
            <PasswordField
              isNew
              hint="At least 8 characters. You sign in with it."
              fault={fault("password")}
              value={password}
              onChange={setPassword}
            />
          </Form>
        </div>
      </NeedsCookies>
    </Doorstep>
  );
}

function WhereIsTheLink() {
  return (
    <Doorstep
      title="Set up"
      heading="Almost there"
      words="The first account is made with a link that only who runs the server can read."
    >
      <Notice look="warn">
        Look at what the server printed when it last started, and open the whole link. Under systemd:{" "}
        <code className="font-mono">journalctl -u mailwright</code>; in a container:{" "}
        <code className="font-mono">docker logs</code> and its name. A new start prints a new link.
      </Notice>
    </Doorstep>
  );
}

function AlreadySetUp() {
  return (
    <Doorstep
      title="Set up"
      heading="This server is set up"
      words="Its first account has been made, so this link has done its work."
    >
      <Link to="/sign-in" className={`${BUTTON} bg-accent text-accent-text`}>
        Sign in
      </Link>
      <p className="text-sm text-soft">
        Was that not you? On the machine itself, <code className="font-mono">mailwright user list</code> shows
        who it was.
      </p>
    </Doorstep>
  );
}
