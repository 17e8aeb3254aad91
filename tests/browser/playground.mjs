/** Drives the playground in Chromium for `test_playground.py`: `node playground.mjs FOLDER` prints what it saw. */

import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [folder] = process.argv.slice(2);
const WAIT = { timeout: 90_000 };

async function open(browser, url, options) {
  const page = await browser.newPage(options);
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  // How long the page could not have answered.
  await page.addInitScript(() => {
    window.longest = 0;
    let last = performance.now();
    setInterval(() => {
      window.longest = Math.max(window.longest, performance.now() - last);
      last = performance.now();
    }, 10);
  });
  await page.goto(url);
  return { page, complaints };
}

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });

/** The output of a program, run with the keyboard; `source` in place of the example's where given. */
async function runProgram(page, name, source) {
  await page.locator("#program").selectOption(name);
  await page.locator(`#source[data-program="${name}"] .cm-content`).click();
  if (source !== undefined) {
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(source);
  }
  await page.keyboard.press("Control+Enter");
  await page
    .locator("#output", { hasText: /finished|stopped/ })
    .or(page.locator(".failure"))
    .first()
    .waitFor(WAIT);
  return page.locator("#output").innerText();
}

/** Draw a one, as a finger would: slightly oblique. */
async function drawOne(page) {
  const box = await page.locator("#drawing").boundingBox();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(0.38, 0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.54, 0.15), { steps: 6 });
  await page.mouse.move(...at(0.53, 0.85), { steps: 12 });
  await page.mouse.up();
}

/** Draw a zero: an oval. */
async function drawZero(page) {
  const box = await page.locator("#drawing").boundingBox();
  const at = (turn) => [
    box.x + (0.5 + 0.22 * Math.sin(turn)) * box.width,
    box.y + (0.5 - 0.36 * Math.cos(turn)) * box.height,
  ];
  await page.mouse.move(...at(0));
  await page.mouse.down();
  for (let i = 1; i <= 32; i++) await page.mouse.move(...at((i / 32) * 2 * Math.PI));
  await page.mouse.up();
}

/** The guess for what `draw` draws, once the bars show one. */
async function guessOf(page, draw) {
  await page.locator("#clear-drawing").click();
  await draw(page);
  await page.locator("#guess", { hasText: /\d/ }).waitFor(WAIT);
  await page.waitForTimeout(300); // the last movement's guess
  return page.locator("#guess").innerText();
}

const server = await startServer();
const browser = await launchChromium();
const address = `${server.url}/playground/`;
try {
  const { page, complaints } = await open(browser, address, { viewport: { width: 1200, height: 800 } });
  const programs = {};
  for (const name of await page.locator("#program option").evaluateAll((all) => all.map((o) => o.value))) {
    programs[name] = await runProgram(page, name);
    if (name === "xor.js") await shoot(page, "editor");
  }
  const failed = await runProgram(
    page,
    "tensor.js",
    'import { create } from "polygrad";\nconst { Tensor } = await create();\nawait Tensor.ones(2, 3).add(Tensor.ones(4)).data();\n',
  );
  const failedPython = await runProgram(page, "tensor.py", "# polygrad\n\n1 / 0\n");
  await shoot(page, "failure");

  // a program without end, and what comes after it
  await page.locator("#program").selectOption("tensor.js");
  await page.locator('#source[data-program="tensor.js"] .cm-content').click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("for (;;) {}");
  await page.keyboard.press("Control+Enter");
  await page.locator("#stop:enabled").click();
  const stopped = await page.locator("#output").innerText();
  await page.locator("#program").selectOption("tensor.py");
  const after = await runProgram(page, "tensor.js");

  await page.evaluate(() => (window.longest = 0)); // screenshots have held it up
  await page.locator("#tab-digits").click();
  await page.locator("#digits-note", { hasText: /^trained|Error/ }).waitFor(WAIT);
  const longest = await page.evaluate(() => window.longest);
  const trained = await page.locator("#digits-note").innerText();
  const guesses = { one: await guessOf(page, drawOne) };
  await shoot(page, "one");
  guesses.zero = await guessOf(page, drawZero);
  const bars = await page.locator("#bars .number").allInnerTexts();
  await shoot(page, "digits");
  await page.locator("#clear-drawing").click();
  const cleared = await page.locator("#guess").innerText();

  // the keyboard moves between tabs
  await page.locator("#tab-digits").focus();
  await page.keyboard.press("ArrowRight");
  await page.locator("#train-characters").click();
  await page.locator(".sample:not(.writing)").nth(2).waitFor(WAIT);
  await shoot(page, "characters");
  await page.locator("#train-characters").click();
  await page.locator("#characters-note", { hasText: /stopped/ }).waitFor(WAIT);
  const written = await page.locator(".sample p").allInnerTexts();
  const learnt = await page.locator("#characters-note").innerText();

  await page.locator("#tab-kernels").click();
  await page.locator(".kernel, .failure").first().waitFor(WAIT);
  const kernels = await page.locator("#kernel-note").innerText();
  const wat = await page.locator(".wat").first().innerText();
  await shoot(page, "kernels");

  const phone = { viewport: { width: 390, height: 800 }, colorScheme: "dark", hasTouch: true };
  const small = await open(browser, `${address}#digits`, phone);
  await small.page.locator("#digits-note", { hasText: /epoch/ }).waitFor(WAIT);
  await drawZero(small.page);
  await shoot(small.page, "phone-digits");
  const widths = {};
  for (const tab of ["editor", "digits", "characters", "kernels"]) {
    await small.page.locator(`#tab-${tab}`).click();
    widths[tab] = await small.page.evaluate(() => document.documentElement.scrollWidth);
  }
  await small.page.locator("#tab-editor").click();
  await runProgram(small.page, "xor.py");
  await shoot(small.page, "phone-editor");

  // a host whose policy forbids eval everywhere
  const strict = await browser.newPage();
  await strict.route("**/runner.mjs", async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    for (const name of ["content-encoding", "content-length"]) delete headers[name];
    headers["content-security-policy"] = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
    await route.fulfill({ response, headers });
  });
  await strict.goto(address);
  const forbidden = await runProgram(strict, "tensor.js");
  const allowed = await runProgram(strict, "tensor.py");

  console.log(
    JSON.stringify({
      ...{ programs, failed, failedPython, stopped, after, trained, guesses, bars, cleared },
      ...{ written, learnt, kernels, wat, longest, widths, forbidden, allowed },
      complaints: [...complaints, ...small.complaints],
    }),
  );
} finally {
  await browser.close();
  server.close();
}
