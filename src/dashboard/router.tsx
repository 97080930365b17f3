import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { session } from "./api/session.ts";
import { NotFound } from "./shell/not-found.tsx";
import { PageFault } from "./shell/page-fault.tsx";
import { Shell } from "./shell/shell.tsx";
import { Loading } from "./ui/spinner.tsx";

interface Context {
  queries: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: ({ to }: { to?: unknown }): { to?: string } => (isOwnPath(to) ? { to } : {}),
  beforeLoad: async ({ context, search }) => {
    if (await context.queries.ensureQueryData(session)) throw redirect({ href: search.to ?? "/app" });
  },
  component: lazyRouteComponent(() => import("./pages/sign-in/sign-in.tsx"), "SignIn"),
});

/** Everything below needs somebody who is signed in. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    if (await context.queries.ensureQueryData(session)) return;
    throw redirect({ to: "/sign-in", search: { to: `/app${location.href}` } });
  },
  component: Shell,
});

const activity = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/activity/activity.tsx"), "Activity"),
});

const tree = root.addChildren([signIn, signedIn.addChildren([activity])]);

export function createDashboardRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: "/app",
    context: { queries },
    defaultPreload: "intent",
    defaultPendingComponent: () => <Loading what="the page" />,
    defaultErrorComponent: PageFault,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: true,
  });
}

/** Where a sign-in leads to: a page of ours, and never another site. */
function isOwnPath(to: unknown): to is string {
  return typeof to === "string" && /^\/app(\/(?!\/)|$|\?)/.test(to) && !to.includes("\\");
}
