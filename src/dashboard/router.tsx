import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { get } from "./api/client.ts";
import { session } from "./api/session.ts";
import { NotFound } from "./shell/not-found.tsx";
import { isOwnPath, isPage } from "./shell/own-paths.ts";
import { UnfetchedPage } from "./shell/page-fault.tsx";
import { Shell } from "./shell/shell.tsx";
import { Loading } from "./ui/spinner.tsx";

interface Context {
  queries: QueryClient;
}

const MAX_ADDRESS_CHARS = 320;

interface SignInSearch {
  to?: string | undefined;
  /** Whom an invitation is for. */
  email?: string | undefined;
}

/**
 * A page that cannot be fetched is told of in our own frame if nobody answers. If the server does answer, it has become
 * another version: the router then loads all anew.
 */
const lazyPage: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(async () => {
    try {
      return await load();
    } catch (error) {
      await get("/server");
      throw error;
    }
  }, name);

const root = createRootRouteWithContext<Context>()({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  // What is not named here stays as the address has it: a way that is no page of ours is taken out by name.
  validateSearch: ({ to, email }: { to?: unknown; email?: unknown }): SignInSearch => ({
    to: isOwnPath(to) ? to : undefined,
    email: typeof email === "string" ? email.slice(0, MAX_ADDRESS_CHARS) : undefined,
  }),
  beforeLoad: async ({ context, search }) => {
    const to = search.to ?? "/app";
    if (await context.queries.ensureQueryData(session))
      throw redirect({ href: to, reloadDocument: !isPage(to) });
  },
  component: lazyPage(() => import("./pages/sign-in/sign-in.tsx"), "SignIn"),
});

const setup = createRoute({
  getParentRoute: () => root,
  path: "/setup",
  validateSearch: ({ token }: { token?: unknown }): { token?: string } =>
    typeof token === "string" ? { token } : {},
  component: lazyPage(() => import("./pages/setup/setup.tsx"), "Setup"),
});

/** Everything below needs somebody who is signed in. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    if (await context.queries.ensureQueryData(session)) return;
    // Who wanted nothing particular is led on from there.
    throw redirect({
      to: "/sign-in",
      search: location.href === "/" ? {} : { to: `/app${location.href}` },
    });
  },
  component: Shell,
});

/** The pages, each loaded when it is first opened. */
const pages = [
  createRoute({
    getParentRoute: () => signedIn,
    path: "/welcome",
    component: lazyPage(() => import("./pages/setup/welcome.tsx"), "Welcome"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/",
    component: lazyPage(() => import("./pages/activity/activity.tsx"), "Activity"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/messages/$message_id",
    component: lazyPage(() => import("./pages/activity/message.tsx"), "Message"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/conversations",
    component: lazyPage(() => import("./pages/conversations/conversations.tsx"), "Conversations"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/conversations/$conversation_id",
    component: lazyPage(() => import("./pages/conversations/conversation.tsx"), "Conversation"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/inboxes",
    component: lazyPage(() => import("./pages/inboxes/inboxes.tsx"), "Inboxes"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/inboxes/$inbox_id",
    component: lazyPage(() => import("./pages/inboxes/inbox.tsx"), "Inbox"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/contexts",
    component: lazyPage(() => import("./pages/contexts/contexts.tsx"), "Contexts"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/contexts/$context_id",
    component: lazyPage(() => import("./pages/contexts/context.tsx"), "Context"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/connections",
    component: lazyPage(() => import("./pages/connections/connections.tsx"), "Connections"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/connections/$connection_id",
    component: lazyPage(() => import("./pages/connections/connection.tsx"), "Connection"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/approvals",
    component: lazyPage(() => import("./pages/approvals/approvals.tsx"), "Approvals"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/approvals/$approval_id",
    component: lazyPage(() => import("./pages/approvals/approval.tsx"), "Approval"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/schedules",
    component: lazyPage(() => import("./pages/schedules/schedules.tsx"), "Schedules"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/schedules/$schedule_id",
    component: lazyPage(() => import("./pages/schedules/schedule.tsx"), "Schedule"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/recipes",
    component: lazyPage(() => import("./pages/recipes/recipes.tsx"), "Recipes"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/domains",
    component: lazyPage(() => import("./pages/domains/domains.tsx"), "Domains"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/webhooks",
    component: lazyPage(() => import("./pages/webhooks/webhooks.tsx"), "Webhooks"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/webhooks/$endpoint_id",
    component: lazyPage(() => import("./pages/webhooks/endpoint.tsx"), "Endpoint"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/playground",
    component: lazyPage(() => import("./pages/playground/playground.tsx"), "Playground"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/test-set",
    component: lazyPage(() => import("./pages/test-set/test-set.tsx"), "TestSet"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/usage",
    component: lazyPage(() => import("./pages/usage/usage.tsx"), "Usage"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/settings",
    component: lazyPage(() => import("./pages/settings/settings.tsx"), "Settings"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/billing",
    validateSearch: ({ checkout }: { checkout?: unknown }): { checkout?: "done" | "cancelled" } =>
      checkout === "done" || checkout === "cancelled" ? { checkout } : {},
    component: lazyPage(() => import("./pages/billing/billing.tsx"), "Billing"),
  }),
  createRoute({
    getParentRoute: () => signedIn,
    path: "/server",
    component: lazyPage(() => import("./pages/server/server.tsx"), "Server"),
  }),
  createRoute({ getParentRoute: () => signedIn, path: "$", component: NotFound }),
] as const;

const tree = root.addChildren([signIn, setup, signedIn.addChildren(pages)]);

export function createDashboardRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: "/app",
    context: { queries },
    defaultPreload: "intent",
    defaultPendingComponent: () => <Loading what="the page" />,
    // What could not be fetched is not asked for a second time by the router.
    defaultErrorComponent: UnfetchedPage,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: true,
  });
}
