import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const SERVER = "http://127.0.0.1:8080";
/** What the dashboard's own server hands on while it is being worked on: all that is not below /app. */
const API = "^/(?!app(?:/|$))";

const BUILT = join(import.meta.dirname, "../../dist/dashboard");

/** Beside each text its compressed twins, made once here and not at every request. Without TLS browsers know only gzip. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async closeBundle() {
      const names = await readdir(BUILT, { recursive: true });
      for (const name of names.filter((file) => /\.(js|css|svg|html)$/.test(file))) {
        const text = await readFile(join(BUILT, name));
        await writeFile(join(BUILT, `${name}.br`), brotliCompressSync(text));
        await writeFile(join(BUILT, `${name}.gz`), gzipSync(text, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  base: "/app/",
  plugins: [react(), tailwindcss(), compressed()],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    // The policy of the page forbids what stands in the page itself, data: addresses of scripts too.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
  },
  server: { proxy: { [API]: { target: SERVER, changeOrigin: true } } },
});
