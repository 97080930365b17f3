import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { Menu as MenuIcon, X } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { waitingApprovals } from "../api/lists.ts";
import { onNews, useLiveMessages } from "../api/live.ts";
import { useMe, useSignOut, useSold } from "../api/session.ts";
import { Badge } from "../ui/badge.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { classes } from "../ui/class-names.ts";
import { Fault } from "../ui/notice.tsx";
import { NAVIGATION } from "./navigation.ts";
import { OutOfReach } from "./out-of-reach.tsx";

/** The frame of every page for somebody who is signed in: navigation at the side, or behind a button on a phone. */
export function Shell() {
  const [open, setOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  useLiveMessages();
  // What is hidden cannot keep the focus.
  const close = useCallback((): void => {
    setOpen(false);
    menu.current?.focus();
  }, []);
  useEffect(() => {
    if (!open) return;
    const onKey = ({ key }: KeyboardEvent): void => {
      if (key === "Escape") close();
    };
    // On a phone the navigation lies above the page: who goes on there must not have it in the way. The page moves the
    // focus by itself too, when work is done: that is nobody's wish to close the navigation.
    const goneTo = (place: EventTarget | null): void => {
      if (!bar.current?.contains(place as Node | null)) setOpen(false);
    };
    const onTab = ({ key }: KeyboardEvent): void => {
      if (key === "Tab") goneTo(document.activeElement);
    };
    const onPointer = ({ target }: Event): void => goneTo(target);
    document.addEventListener("keydown", onKey);
    document.addEventListener("keyup", onTab);
    document.addEventListener("pointerdown", onPointer);
    return () => {
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("keyup", onTab);
      document.removeEventListener("pointerdown", onPointer);
    };
  }, [open, close]);
  return (
    <div className="md:grid md:min-h-dvh md:grid-cols-[14rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:absolute focus:z-40 focus:bg-card focus:p-3"
      >
        Skip to the content
      </a>
      <div ref={bar} className="sticky top-0 z-20 md:contents">
        <div className="flex items-center justify-between border-b border-line bg-card px-4 py-2 md:hidden">
          <Brand />
          <IconButton
            ref={menu}
            label={open ? "Close the navigation" : "Open the navigation"}
            aria-expanded={open}
            aria-controls="navigation"
            onClick={() => setOpen(!open)}
          >
            {open ? <X /> : <MenuIcon />}
          </IconButton>
        </div>
        <aside
          id="navigation"
          className={classes(
            "overflow-y-auto border-line bg-card md:sticky md:top-0 md:flex md:h-dvh md:flex-col md:border-r",
            // The percentages are of the bar above.
            "max-md:absolute max-md:inset-x-0 max-md:top-full max-md:max-h-[calc(100dvh-100%)] max-md:overscroll-contain max-md:border-b max-md:shadow-lg",
            !open && "max-md:hidden",
          )}
        >
          <div className="px-4 py-4 max-md:hidden">
            <Brand />
          </div>
          <Navigation onGo={close} />
          <Account />
        </aside>
      </div>
      <main id="content" tabIndex={-1} className="min-w-0 -outline-offset-2">
        <OutOfReach />
        <Outlet />
      </main>
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className="flex items-center gap-2 font-semibold">
      <img src="/app/icon.svg" alt="" className="size-6" />
      Mailwright
    </Link>
  );
}

const OPEN = { className: "bg-accent-soft font-medium text-accent" };
const AROUND_OPEN = { ...OPEN, "aria-current": true };

function Navigation({ onGo }: { onGo: () => void }) {
  const { is_admin } = useMe();
  const sold = useSold();
  // The messages are what the first page lists, though their addresses do not begin with its own.
  const in_message = useLocation({ select: ({ pathname }) => pathname.startsWith("/messages/") });
  return (
    <nav aria-label="Pages" className="grid gap-4 px-2 py-2 md:flex-1 md:content-start">
      {NAVIGATION.map(({ title, pages }) => (
        <div key={title} className="grid gap-0.5">
          <p className="px-2 pb-1 text-xs font-medium text-soft">{title}</p>
          {pages
            .filter((page) => (is_admin || !page.admin) && (sold || !page.sold))
            .map(({ to, label, icon: Icon }) => (
              <div key={to} className="relative">
                <Link
                  to={to}
                  onClick={onGo}
                  aria-describedby={to === "/approvals" ? WAITING : undefined}
                  activeOptions={{ exact: to === "/", includeSearch: false }}
                  activeProps={OPEN}
                  inactiveProps={
                    to === "/" && in_message ? AROUND_OPEN : { className: "text-text hover:bg-hover" }
                  }
                  className="flex items-center gap-2.5 rounded-md px-2 py-1.5 text-sm max-md:py-2.5"
                >
                  <Icon aria-hidden className="size-4 shrink-0" />
                  {label}
                </Link>
                {to === "/approvals" && <Waiting />}
              </div>
            ))}
        </div>
      ))}
    </nav>
  );
}

const WAITING = "approvals-waiting";

/** How many approvals wait, beside the link to them. */
function Waiting() {
  const { data: count, refetch } = useQuery(waitingApprovals);
  useEffect(() => onNews((at_ms) => void (at_ms > 0 && refetch())), [refetch]);
  if (!count) return null;
  return (
    <span id={WAITING} className="pointer-events-none absolute inset-y-0 right-2 flex items-center">
      <Badge look="warn">
        {count}
        <span className="sr-only"> waiting for you</span>
      </Badge>
    </span>
  );
}

function Account() {
  const me = useMe();
  const signOut = useSignOut();
  return (
    <div className="grid gap-1 border-t border-line p-3 text-sm">
      <p className="truncate px-1 text-soft" title={me.email}>
        {me.email}
      </p>
      <Button
        look="quiet"
        className="-mx-2 justify-start"
        busy={signOut.isPending}
        onClick={() => signOut.mutate()}
      >
        Sign out
      </Button>
      <Fault error={signOut.error} />
    </div>
  );
}
