/** Chromium or Firefox, by one interface: what both drivers have in common. */

import { launchChromium } from "../../web/chromium.mjs";

/** `{newPage, close}`. A page has `goto`, `on` and `evaluate`. */
export async function launch(name) {
  if (name === "chromium") return launchChromium();
  const puppeteer = await import("puppeteer-core");
  const executablePath = process.env.FIREFOX_PATH ?? "/usr/bin/firefox-esr";
  return puppeteer.launch({ browser: "firefox", executablePath, headless: true, protocolTimeout: 600_000 });
}
