import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { serverFacts } from "../../api/session.ts";
import { Notice } from "../../ui/notice.tsx";

const PROBE = "mw_probe=1";

/**
 * Shows its children where the cookie that signs in would stay. Elsewhere signing in works and is forgotten at once, and the
 * setup link would be used up for nothing, so it says why, and what mends it.
 */
export function NeedsCookies({ children }: { children: ReactNode }) {
  const { data: server } = useQuery(serverFacts);
  if (!server) return children;
  return <Probed base_url={server.base_url}>{children}</Probed>;
}

function Probed({ base_url, children }: { base_url: string; children: ReactNode }) {
  const is_https = base_url.startsWith("https:");
  const [kept] = useState(() => keepsCookie(is_https));
  if (kept) return children;
  if (!is_https || location.protocol === "https:")
    return (
      <Notice look="bad">
        This browser keeps no cookies of {location.host}, and without one nobody stays signed in. Allow them
        for this page, and load it again.
      </Notice>
    );
  const there = new URL(location.pathname + location.search, base_url).href;
  return (
    <Notice look="bad">
      <p>
        This page was opened over plain http, and this server is set up for https (
        <code className="font-mono">server.base_url</code>): your browser drops the cookie that signs you in.
        Nothing has been used up. Open{" "}
        <a href={there} className="underline">
          {new URL(base_url).host} over https
        </a>{" "}
        instead.
      </p>
      <p className="mt-2">
        Does nothing answer there yet? Put the proxy or the certificate in place first; or, in a network of
        your own, set <code className="font-mono">base_url = &quot;{location.origin}&quot;</code> and start
        the server anew.
      </p>
    </Notice>
  );
}

/** Whether a cookie stays that is made as the server makes its own. */
function keepsCookie(secure: boolean): boolean {
  const attributes = `; SameSite=Lax${secure ? "; Secure" : ""}`;
  document.cookie = `${PROBE}${attributes}`;
  const kept = document.cookie.split("; ").includes(PROBE);
  document.cookie = `${PROBE}; Max-Age=0${attributes}`;
  return kept;
}
