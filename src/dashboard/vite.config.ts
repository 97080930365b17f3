import { join } from "node:path";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = process.env["MAILWRIGHT_URL"] ?? "http://127.0.0.1:8080";
/** What the dashboard's own server hands on while it is being worked on: all that is not below /app. */
const API =
  "^/(auth|v1|inboxes|messages|conversations|contexts|connections|custom-domains|integrations|recipes|billing|usage|admin|docs|openapi.json)";

export default defineConfig({
  root: import.meta.dirname,
  base: "/app/",
  plugins: [react(), tailwindcss()],
  build: {
    outDir: join(import.meta.dirname, "../../dist/dashboard"),
    emptyOutDir: true,
    // The policy of the page forbids what stands in the page itself, data: addresses of scripts too.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
  },
  server: { proxy: { [API]: { target: SERVER, changeOrigin: true } } },
});
