/** Finds and starts a headless Chromium: `CHROMIUM_PATH`, else Debian's, else the one Playwright installed. */

import { existsSync } from "node:fs";

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--enable-unsafe-webgpu", // headless, and on SwiftShader where there is no GPU
];

/** The path of a Chromium, or undefined. */
export function findChromium() {
  const named = process.env.CHROMIUM_PATH;
  if (named) return named;
  return ["/usr/bin/chromium", chromium.executablePath()].find((path) => path && existsSync(path));
}

function executablePath() {
  const found = findChromium();
  if (found === undefined) {
    throw new Error(
      "expected a Chromium at CHROMIUM_PATH or /usr/bin/chromium, got none: npx playwright-core install chromium",
    );
  }
  return found;
}

/** A running browser. */
export async function launchChromium() {
  return chromium.launch({ executablePath: executablePath(), args: FLAGS });
}

/** A running browser that keeps what it stores in the folder `profile`. */
export async function launchProfile(profile) {
  return chromium.launchPersistentContext(profile, { executablePath: executablePath(), args: FLAGS });
}
