/** Drives the playground's editor in Chromium for `test_playground_editor.py`: `node playground_editor.mjs FOLDER`. */

import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";
import { open, runProgram, WAIT } from "./playground_page.mjs";

const [folder] = process.argv.slice(2);
const DESK = {
  viewport: { width: 1200, height: 800 },
  permissions: ["clipboard-read", "clipboard-write"],
};
const ADDED = 'console.log("é–𝄞", 6 * 7);';

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const source = (page) => page.locator(".cm-content").innerText();
const note = (page) => page.locator("#editor-note").innerText();
const opened = (page, file) => page.locator(`#source[data-program="${file}"]`).waitFor(WAIT);

async function typeAtEnd(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText(`\n${text}`);
}

/** Edits last, and the way back. */
async function edit(page) {
  await opened(page, "xor.js");
  const seen = { before: await page.locator("#revert").isEnabled() };
  await typeAtEnd(page, ADDED);
  seen.note = await note(page);
  await page.locator("#program").selectOption("tensor.py");
  await opened(page, "tensor.py");
  seen.other = await source(page);
  await page.locator("#program").selectOption("xor.js");
  await opened(page, "xor.js");
  await page.reload();
  await opened(page, "xor.js");
  seen.kept = await source(page);
  await shoot(page, "edited");
  await page.locator("#revert").click();
  seen.reverted = await source(page);
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+z");
  seen.undone = await source(page);
  return seen;
}

/** A link is made, opened elsewhere, run by a click, edited, and found again. */
async function share(page, browser, address) {
  await page.locator("#share").click();
  await page.locator("#editor-note", { hasText: "Link copied" }).waitFor(WAIT);
  const link = await page.evaluate(() => globalThis.navigator.clipboard.readText());
  const { page: other, complaints } = await open(browser, link, DESK);
  const requests = [];
  other.on("request", (request) => requests.push(request.url()));
  await other.locator('#source[data-program^="shared-"]').waitFor(WAIT);
  await other.locator('#status[data-state="ready"]').waitFor(WAIT);
  await other.waitForTimeout(500); // time in which it would run
  const file = await other.locator("#source").getAttribute("data-program");
  const seen = {
    ...{ link, file, source: await source(other), note: await note(other) },
    output: await other.locator("#output").innerText(),
    unedited: await other.evaluate(() =>
      Object.keys(globalThis.localStorage).filter((key) => key.includes("draft")),
    ),
  };
  seen.ran = await runProgram(other, file);
  await typeAtEnd(other, "// mine");
  seen.url = await other.evaluate(() => globalThis.location.href);
  await other.reload();
  await opened(other, file);
  seen.kept = await source(other);
  seen.asked = requests.filter((url) => url.includes(link.split("/").at(-1)));
  await other.goto(`${address}#editor/xor.js/AAAA`);
  await other.locator(".failure").waitFor(WAIT);
  seen.damaged = await other.locator(".failure").innerText();
  await shoot(other, "shared");
  return { ...seen, complaints };
}

/** Completion and help by the keyboard, and help by the mouse, in a program of `file`. */
async function help(page, file, { text, member, variable, foreign, name }) {
  const list = page.locator(".cm-tooltip-autocomplete li");
  await page.locator("#program").selectOption(file);
  await opened(page, file);
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
  const completed = async (typed) => {
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Enter");
    await page.keyboard.type(typed);
    await page.waitForTimeout(500); // the list of what was typed first gives way to the last one
    await list.first().waitFor(WAIT);
    return list.locator(".cm-completionLabel").allInnerTexts();
  };
  const seen = { members: await completed(member) };
  await page.locator(".cm-completionInfo").waitFor(WAIT);
  seen.info = await page.locator(".cm-completionInfo").innerText();
  await shoot(page, `completion-${file}`);
  await page.waitForTimeout(100); // a list that has just come takes no Enter
  await page.keyboard.press("Enter");
  seen.accepted = await source(page);
  await page.evaluate(() => {
    const { document, MutationObserver } = globalThis;
    const region = document.querySelector(".cm-announced"); // cleared soon
    globalThis.announced = "";
    const remember = () => void (globalThis.announced += region.textContent);
    new MutationObserver(remember).observe(region, { childList: true, subtree: true });
  });
  await page.keyboard.press("F1");
  await page.locator(".api-help.cm-tooltip").waitFor(WAIT);
  seen.help = await page.locator(".api-help.cm-tooltip").innerText();
  seen.announced = await page.evaluate(() => globalThis.announced);
  await page.keyboard.press("Escape");
  seen.closed = await page.locator(".cm-tooltip").count();
  seen.imported = await completed(name);
  await page.keyboard.press("Escape");
  seen.variable = await completed(variable);
  await page.keyboard.press("Escape");
  await page.keyboard.type("x;");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await page.keyboard.type(foreign);
  await page.waitForTimeout(300);
  seen.foreign = await list.allInnerTexts();
  await page
    .locator(".cm-line span", { hasText: /^Linear$/ })
    .first()
    .hover();
  await page.locator(".cm-tooltip-hover").waitFor(WAIT);
  seen.hovered = await page.locator(".cm-tooltip-hover").innerText();
  return seen;
}

const PROGRAMS_WITH_HELP = {
  "tensor.js": {
    text:
      'import { create } from "polygrad";\nconst { Tensor, nn, compileStep } = await create();\n' +
      "const layer = new nn.Linear(2, 3);\nconst x = Tensor.ones(2, 2);",
    ...{ member: "x.softm", variable: "layer.", foreign: "Math.", name: "compi" },
  },
  "tensor.py": {
    text: "import math\nfrom polygrad import Tensor, nn\nlayer = nn.Linear(2, 3)\nx = Tensor.ones(2, 2)",
    ...{ member: "x.log_soft", variable: "layer.", foreign: "math.", name: "comp" },
  },
};

/** Programs on the GPU, if there is one. */
async function onGpu(page) {
  const devices = await page
    .locator("#device option")
    .evaluateAll((all) => all.map(({ text, disabled }) => [text, disabled]));
  if (devices[1][1]) return { devices };
  await page.locator("#device").selectOption("WEBGPU");
  await page.locator('#status[data-state="ready"]', { hasText: "WEBGPU" }).waitFor(WAIT);
  const programs = {
    "tensor.py": "from polygrad import Tensor\nx = Tensor([1.0, 2.0])\nprint(x.device, (x * 2).tolist())",
    "tensor.js":
      'import { create } from "polygrad";\nconst { Tensor } = await create();\n' +
      "const x = new Tensor([1, 2]);\nconsole.log(x.device, await x.mul(2).tolist());",
  };
  const ran = {};
  for (const [name, text] of Object.entries(programs)) ran[name] = await runProgram(page, name, text);
  await page.locator("#device").selectOption("WASM");
  ran.back = await runProgram(page, "tensor.py");
  return { devices, ran };
}

const TOOLTIPS = {
  hover: async (page) => {
    await page
      .locator(".cm-line", { hasText: /Linear$/ })
      .first()
      .hover({ position: { x: 50, y: 8 } });
    await page.locator(".cm-tooltip-hover").waitFor(WAIT);
  },
  completion: async (page) => {
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete li").first().waitFor(WAIT);
  },
  help: async (page) => {
    await page.keyboard.press("F1");
    await page.locator(".api-help.cm-tooltip").waitFor(WAIT);
  },
};

/** Leave a program for a shorter one while a tooltip is open and about to be measured, in the next frame. */
async function leaveTooltip(page, show) {
  await page.locator("#program").selectOption("tensor.js");
  await opened(page, "tensor.js");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(`${"// a comment of some length\n".repeat(100)}nn.Linear`);
  await page.keyboard.press("Control+End");
  await page.evaluate(() => {
    const request = globalThis.requestAnimationFrame;
    const waiting = [];
    globalThis.requestAnimationFrame = (callback) => waiting.push(callback);
    globalThis.releaseFrames = () => {
      globalThis.requestAnimationFrame = request;
      for (const callback of waiting) request(callback);
    };
  });
  await show(page);
  await page.locator("#program").selectOption("tensor.py");
  await opened(page, "tensor.py");
  await page.evaluate(() => globalThis.releaseFrames());
  await page.waitForTimeout(100); // some frames
  return page.locator(".cm-tooltip").count();
}

/** Another program is opened, the worker is started anew, and timers throw while a program runs. */
async function runAndLeave(page) {
  const begin = async (text) => {
    await page.locator("#program").selectOption("tensor.js");
    await opened(page, "tensor.js");
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(text);
    await page.locator("#run:enabled").waitFor(WAIT);
    await page.keyboard.press("Control+Enter");
    await page.locator("#stop:enabled").waitFor(WAIT);
  };
  const seen = {};
  await begin(
    "console.log(1);\nawait new Promise((done) => setTimeout(done, 5000));\nthrow new Error('late');",
  );
  await page.locator("#program").selectOption("tensor.py");
  await opened(page, "tensor.py");
  await page.locator(".failure").waitFor(WAIT);
  seen.late = await page.locator(".failure").innerText();
  seen.line = await page.locator(".cm-activeLineGutter").allInnerTexts();
  seen.runs = await page.locator("#run").isEnabled();

  await begin("for (;;) {}");
  await page.locator("#device").dispatchEvent("change");
  seen.stopped = await page.locator("#output").innerText();
  seen.after = await runProgram(page, "gradients.py");

  await begin(
    "setTimeout(() => { throw new Error('in a timer'); }, 0);\nawait new Promise((done) => setTimeout(done, 3000));",
  );
  await page.locator("#output", { hasText: "finished" }).waitFor(WAIT);
  seen.timer = await page.locator("#output").innerText();
  seen.status = await page.locator("#status").getAttribute("data-state");
  await page.locator("#revert").click();
  return seen;
}

/** Links of strangers: HTML in a name, the name of a property of every object, a text that unpacks to megabytes. */
async function openHostileLinks(browser, address) {
  const { page, complaints } = await open(browser, address, DESK);
  await opened(page, "xor.js");
  const link = (example, text) =>
    page.evaluate(
      async ([example, text]) => {
        const { Blob, Response, CompressionStream, btoa, encodeURIComponent } = globalThis;
        const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
        const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
        const packed = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        const name = encodeURIComponent(example);
        return `#editor/${name}/${packed.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
      },
      [example, text],
    );
  const titles = [];
  for (const example of ["<img src=x onerror=alert(1)>.js", "constructor"]) {
    const before = await page.locator("#source").getAttribute("data-program");
    await page.goto(address + (await link(example, "</script><b>hostile</b>")));
    await page.locator(`#source:not([data-program="${before}"])`).waitFor(WAIT);
    titles.push(await page.locator("#program option:checked").evaluate(({ text }) => text));
  }
  const seen = {
    titles,
    source: await source(page),
    elements: await page.locator("main img, main b").count(),
  };
  await page.goto(address + (await link("xor.js", "x".repeat(3_000_000))));
  await page.locator(".failure").waitFor(WAIT);
  seen.huge = await page.locator(".failure").innerText();
  seen.kept = await source(page);
  return { ...seen, complaints };
}

/** A browser that has no room for what the page keeps. */
async function editWithoutRoom(browser, address) {
  const context = await browser.newContext(DESK);
  await context.addInitScript(() => {
    globalThis.Storage.prototype.setItem = () => {
      throw new globalThis.DOMException("no room", "QuotaExceededError");
    };
  });
  const page = await context.newPage();
  await page.goto(address);
  await opened(page, "xor.js");
  const seen = { failures: await page.locator(".failure").count() };
  await typeAtEnd(page, ADDED);
  seen.note = await note(page);
  await page.keyboard.press("Control+Enter");
  await page.locator("#output", { hasText: "finished" }).waitFor(WAIT);
  seen.ran = await page.locator("#output").innerText();
  return seen;
}

const server = await startServer();
const browser = await launchChromium();
const address = `${server.url}/playground/`;
try {
  const { page, complaints } = await open(browser, address, DESK);
  const edited = await edit(page);
  const shared = await share(page, browser, address);
  const gpu = await onGpu(page);
  const helped = {};
  for (const [file, asked] of Object.entries(PROGRAMS_WITH_HELP))
    helped[file] = await help(page, file, asked);
  const tooltips = {};
  for (const [kind, show] of Object.entries(TOOLTIPS)) tooltips[kind] = await leaveTooltip(page, show);
  const left = await runAndLeave(page);
  const hostile = await openHostileLinks(browser, address);
  const roomless = await editWithoutRoom(browser, address);
  const all = [...complaints, ...shared.complaints, ...hostile.complaints];
  // what programs throw in timers is an error of the page's console, too
  const unexpected = all.filter((text) => !text.includes("in a timer"));
  console.log(
    JSON.stringify({
      ...{ edited, shared, gpu, helped, tooltips, left, hostile, roomless },
      complaints: unexpected,
    }),
  );
} finally {
  await browser.close();
  server.close();
}
