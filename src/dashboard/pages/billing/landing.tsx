import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { session, useMe } from "../../api/session.ts";
import { Notice } from "../../ui/notice.tsx";
import { Spinner } from "../../ui/spinner.tsx";
import { before, holdingsOf } from "./before.ts";

const LOOK_MS = 2_000;
/** How long the page waits for news from the payment provider. */
const PATIENCE_MS = 60_000;

/** Shown to somebody who comes back from the page of the payment provider. */
export function Landing({ checkout }: { checkout: "done" | "cancelled" }) {
  return checkout === "done" ? <Bought /> : <Notice>Nothing was bought, and nothing is paid.</Notice>;
}

function Bought() {
  const me = useMe();
  const [had] = useState(before);
  const [tired, setTired] = useState(false);
  const arrived = had !== null && had !== holdingsOf(me);
  const waiting = !arrived && !tired;
  useQuery({ ...session, refetchInterval: waiting ? LOOK_MS : false });
  useEffect(() => {
    const timer = setTimeout(() => setTired(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  if (arrived) return <Notice look="good">Thank you. What you bought is yours now: see below.</Notice>;
  if (waiting)
    return (
      <Notice>
        <span className="flex items-center gap-2">
          <Spinner /> Thank you. The payment provider tells this server in a moment, and then it shows below.
        </span>
      </Notice>
    );
  return (
    <Notice look="warn">
      The payment provider has not told this server anything new yet. Nothing is lost: look again in a few
      minutes, and if your plan below is still the old one, ask whoever runs this server.
    </Notice>
  );
}
