import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";

// Every address is relative: the page works under any prefix (TensorBoard, a proxy, a notebook).
export default defineConfig({
  base: "./",
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: false })],
  build: {
    outDir: "../src/stepscope/web/static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false, // the rules are few, and a report has no address to fetch its own from
    assetsInlineLimit: 0, // the Content-Security-Policy knows no data: addresses for scripts and styles
    // The polyfill would be an inline script, and a report has no addresses.
    modulePreload: { polyfill: false },
    rollupOptions: { input: { index: "index.html", report: "src/report.tsx", widget: "src/widget.tsx" } },
    chunkSizeWarningLimit: 1200,
  },
  server: {
    fs: { allow: [".."] }, // for pages of the documentation that the page shows
    proxy: { "/api": process.env.STEPSCOPE_SERVER ?? "http://127.0.0.1:8765" },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
});
