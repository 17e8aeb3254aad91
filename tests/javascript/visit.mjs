/** Opens a page in Chromium and prints, as JSON, the text of `#out` once there is some: `node visit.mjs URL`. */

import { launchChromium } from "../../web/chromium.mjs";

const browser = await launchChromium();
try {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => {
    const isIcon = message.location().url.endsWith("/favicon.ico"); // browsers ask for it unasked
    if (message.type() === "error" && !isIcon) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(process.argv[2]);
  await page
    .waitForFunction(() => document.getElementById("out")?.textContent, undefined, { timeout: 90_000 })
    .catch((error) => complaints.push(String(error)));
  const text = await page.locator("#out").textContent({ timeout: 1000 });
  console.log(JSON.stringify({ text, complaints }));
} finally {
  await browser.close();
}
