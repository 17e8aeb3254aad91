#!/usr/bin/env node
/**
 * Takes the picture of the playground in the README, `docs/images/playground.png`: `node scripts/playground_picture.mjs`.
 *
 * The playground has to be built (`make javascript`). The classifier trains, and reads a digit that was drawn.
 */

import { fileURLToPath } from "node:url";

import { launchChromium } from "../web/chromium.mjs";
import { startServer } from "../web/serve.mjs";

const PATH = fileURLToPath(new URL("../docs/images/playground.png", import.meta.url));
const SIZE = { width: 1080, height: 660 };
const WAIT = { timeout: 120_000 };

/** A three, in one stroke; points are parts of the drawing's sides. */
const THREE = [
  ...Array.from({ length: 25 }, (_, i) => onArc(0.33, -150 + 10 * i)),
  ...Array.from({ length: 25 }, (_, i) => onArc(0.67, -90 + 10 * i)),
];

/** A point at `angle` (0: to the right, in degrees) on an arc whose centre is at the height `y`. */
function onArc(y, angle) {
  const turn = (angle * Math.PI) / 180;
  return [0.46 + 0.17 * Math.cos(turn), y + 0.17 * Math.sin(turn)];
}

async function draw(page, points) {
  const { x, y, width, height } = await page.locator("#drawing").boundingBox();
  const [first, ...others] = points.map(([a, b]) => [x + a * width, y + b * height]);
  await page.mouse.move(...first);
  await page.mouse.down();
  for (const point of others) await page.mouse.move(...point, { steps: 2 });
  await page.mouse.up();
}

const server = await startServer();
const browser = await launchChromium();
try {
  const page = await browser.newPage({ viewport: SIZE, colorScheme: "light" });
  await page.goto(`${server.url}/playground/#digits`);
  await page.locator("#tab-digits").click(); // it starts to train
  await draw(page, THREE);
  await page.locator("#train-digits", { hasText: "Train again" }).waitFor(WAIT);
  await page.waitForTimeout(1000); // the last guess
  await page.locator("#digits-note").hover();
  await page.screenshot({ path: PATH });
} finally {
  await browser.close();
  server.close();
}
