/** Runs `main` of the bundle `site/app.js` in Chromium: `node bundle_host.mjs PACKAGE`. */

import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { servePackage } from "./server.mjs";

const [folder] = process.argv.slice(2);
const mounts = { "/site/": join(folder, "site"), "/assets/": join(folder, "site/assets") };
const server = await servePackage(folder, { mounts });
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  await page.goto(`${server.url}/run.html`);
  console.log(JSON.stringify(await page.evaluate(async () => (await import("/site/app.js")).main())));
} finally {
  await browser.close();
  server.close();
}
