/**
 * Opens `site/readme.html`, with the package's files as `polygrad/` beside it, and prints the first line that it writes
 * to the console: `node readme_host.mjs PACKAGE`. Scripts may be inside the page, as in the guide.
 */

import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { PYODIDE, servePackage } from "./server.mjs";

const [folder] = process.argv.slice(2);
const server = await servePackage(folder, {
  headers: {
    "Content-Security-Policy": "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; worker-src 'self'",
  },
  mounts: {
    "/site/": join(folder, "site"),
    "/site/polygrad/": join(folder, "node_modules/polygrad/dist/browser"),
    "/site/polygrad/pyodide/": PYODIDE,
  },
});
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  const line = page.waitForEvent("console", { timeout: 120_000 });
  await page.goto(`${server.url}/site/readme.html`);
  console.log((await line).text());
} finally {
  await browser.close();
  server.close();
}
