import "./theme.css";
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client.ts";
import { session } from "./api/session.ts";
import { createDashboardRouter } from "./router.tsx";
import { keepFocus } from "./shell/focus.ts";
import { ToastArea } from "./ui/toast.tsx";

const queries = new QueryClient({
  queryCache: new QueryCache({
    // The session ended while a page was open: its next call leads to the sign-in.
    onError: (error) => {
      if (error instanceof ApiError && error.problem.status === 401) {
        queries.setQueryData(session.queryKey, null);
        void router.invalidate();
      }
    },
  }),
  defaultOptions: {
    queries: {
      // What the server refused it refuses again; only an answer that never came is worth another try.
      retry: (failures, error) => failures < 2 && error instanceof ApiError && error.problem.status === 0,
    },
  },
});
const router = createDashboardRouter(queries);
keepFocus(router);

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

const root = document.getElementById("root");
if (!root) throw new Error("The page has no #root.");
createRoot(root, {
  // What the server refused stands on the page, and is no mistake of it.
  onCaughtError: (error) => !(error instanceof ApiError) && console.error(error),
}).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <ToastArea>
        <RouterProvider router={router} />
      </ToastArea>
    </QueryClientProvider>
  </StrictMode>,
);
