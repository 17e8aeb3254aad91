/** `node page_text.mjs FOLDER`: opens the page that does the jobs of FOLDER in Chromium; prints what it left, and complaints. */

import { fileURLToPath } from "node:url";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [folder] = process.argv.slice(2);
const mounts = {
  "/text/": fileURLToPath(new URL("page/", import.meta.url)),
  "/text/jobs.json": `${folder}/jobs.json`,
  "/text/files/": folder,
};
// the strictest policy under which WebAssembly runs
const policy =
  "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";
const server = await startServer({ mounts, headers: { "Content-Security-Policy": policy } });
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${server.url}/text/text.html`);
  await page.waitForFunction(() => window.result !== undefined, undefined, { timeout: 120_000 });
  const result = await page.evaluate(() => window.result);
  console.log(JSON.stringify({ ...result, complaints }));
} finally {
  await browser.close();
  server.close();
}
