/** Drives the playground in Chromium for `test_playground.py`: `node playground.mjs FOLDER` prints what it saw. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";
import { forbidEval, open, runProgram, WAIT } from "./playground_page.mjs";

const [folder] = process.argv.slice(2);

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });

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

/** The ONNX tab: the example, a file that is opened, one that is dropped, and one that is damaged. */
async function runOnnx(page) {
  const settled = async (text) => {
    await page
      .locator("#onnx-note", { hasText: text })
      .or(page.locator("#onnx-failure .failure"))
      .first()
      .waitFor(WAIT);
    await page.locator('#onnx .graph[aria-busy="false"]').waitFor(WAIT);
  };
  const texts = (selector) => page.locator(selector).allInnerTexts();
  const state = async () => ({
    note: await page.locator("#onnx-note").innerText(),
    nodes: await page.locator("#onnx .node .op").evaluateAll((all) => all.map((x) => x.firstChild.data)),
    ops: await texts(".op-times code"),
    times: await page.locator("#onnx-times .hint").allInnerTexts(),
    bars: await texts("#onnx-outputs .bars li"),
    outputs: await texts("#onnx-outputs .port"),
    numbers: await texts("#onnx-outputs pre"),
  });
  await settled(/was timed/);
  const example = await state();
  await page.locator("#onnx .node").nth(2).focus();
  example.readout = await page.locator("#onnx .graph .readout").innerText();
  await shoot(page, "onnx");
  // numbers that do not fit, and zeros
  await page.locator("#onnx-inputs textarea").fill("1 2 x");
  await page.locator("#onnx-run").click();
  await page.locator("#onnx-failure .failure").waitFor(WAIT);
  const wrong = await page.locator("#onnx-failure").innerText();
  await page.locator(".size input").fill("3");
  await page.locator(".model-input select").first().selectOption("zeros");
  await page.locator("#onnx-run").click();
  await settled(/Ran in/);
  const zeros = await state();
  await page.locator(".model-input select").first().selectOption("image");
  await page.locator('.model-input input[type="file"]').setInputFiles(join(folder, "onnx.png"));
  await page.locator("#onnx-run").click();
  await settled(/Ran in/);
  const picture = await state();

  await page.locator("#onnx-file").setInputFiles(join(folder, "sums.onnx"));
  await settled(/sums\.onnx: 2 nodes/);
  await page.locator("#onnx-run").click();
  await settled(/Ran in/);
  const opened = await state();
  const drop = async (name, bytes) => {
    const data = await page.evaluateHandle(
      ([name, bytes]) => {
        const transfer = new globalThis.DataTransfer();
        transfer.items.add(new globalThis.File([Uint8Array.from(bytes)], name));
        return transfer;
      },
      [name, [...bytes]],
    );
    await page.locator("#onnx").dispatchEvent("drop", { dataTransfer: data });
  };
  const model = await readFile(join(folder, "sums.onnx"));
  await drop("cut.onnx", model.subarray(0, model.length - 7));
  await page.locator("#onnx-failure .failure").waitFor(WAIT);
  const damaged = await page.locator("#onnx-failure").innerText();
  await drop("dropped.onnx", model);
  await settled(/dropped\.onnx: 2 nodes/);
  return { example, wrong, zeros, picture, opened, damaged, dropped: await state() };
}

const server = await startServer();
const browser = await launchChromium();
const address = `${server.url}/playground/`;
try {
  const { page, complaints } = await open(browser, address, { viewport: { width: 1200, height: 800 } });
  await page.locator("#source[data-program]").waitFor(WAIT);
  const programs = {};
  const listed = await page.locator("#program option").evaluateAll((all) => all.map((o) => o.value));
  const whole = ["convolutional.py", "characters.py", "autoencoder.py", "uncertainty.py"];
  for (const name of listed.filter((name) => !whole.includes(name))) {
    programs[name] = await runProgram(page, name);
    if (name === "xor.js") await shoot(page, "editor");
  }
  // programs of examples/: one with the files that it reads, shortened
  const source = await page.evaluate(async () => (await fetch("programs/convolutional.py")).text());
  const example = await runProgram(page, "convolutional.py", source.replace("default=10", "default=2"));
  const pictures = await page.locator("#pictures svg").count();
  await shoot(page, "example");
  const failed = await runProgram(
    page,
    "tensor.js",
    'import { create } from "polygrad";\nconst { Tensor } = await create();\nawait Tensor.ones(2, 3).add(Tensor.ones(4)).data();\n',
  );
  const failedPython = await runProgram(page, "tensor.py", "# polygrad\n\n1 / 0\n");
  await shoot(page, "failure");
  await page.locator("#revert").click(); // edits last

  // a program without end, and what comes after it
  await page.locator("#program").selectOption("tensor.js");
  await page.locator('#source[data-program="tensor.js"] .cm-content').click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("for (;;) {}");
  await page.keyboard.press("Control+Enter");
  await page.locator("#stop:enabled").click();
  const stopped = await page.locator("#output").innerText();
  await page.locator("#revert").click();
  await page.locator("#program").selectOption("tensor.py");
  const after = await runProgram(page, "tensor.js");

  await page.locator("#tab-digits").click();
  await page.locator("#digits-note", { hasText: /^trained|Error/ }).waitFor(WAIT);
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

  await page.locator("#tab-onnx").click();
  const onnx = await runOnnx(page);

  const phone = { viewport: { width: 375, height: 740 }, colorScheme: "dark", hasTouch: true };
  const small = await open(browser, `${address}#digits`, phone);
  await small.page.locator("#digits-note", { hasText: /epoch/ }).waitFor(WAIT);
  await drawZero(small.page);
  await shoot(small.page, "phone-digits");
  const widths = {};
  for (const tab of ["editor", "digits", "characters", "boundaries", "onnx", "kernels"]) {
    await small.page.locator(`#tab-${tab}`).click();
    widths[tab] = await small.page.evaluate(() => document.documentElement.scrollWidth);
  }
  await small.page.locator("#tab-editor").click();
  await runProgram(small.page, "xor.py");
  await shoot(small.page, "phone-editor");

  // a host whose policy forbids eval everywhere; it starts from what the first page has stored
  const strict = await page.context().newPage();
  await forbidEval(strict);
  await strict.goto(address);
  const forbidden = await runProgram(strict, "tensor.js");
  const allowed = await runProgram(strict, "tensor.py");

  console.log(
    JSON.stringify({
      ...{
        programs,
        listed,
        example,
        pictures,
        failed,
        failedPython,
        stopped,
        after,
        trained,
        guesses,
        bars,
        cleared,
      },
      ...{ written, learnt, onnx, widths, forbidden, allowed },
      complaints: [...complaints, ...small.complaints],
    }),
  );
} finally {
  await browser.close();
  server.close();
}
