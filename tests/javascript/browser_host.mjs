/**
 * Runs the cases in a page, by the script tag of the packed package, under a strict Content-Security-Policy:
 * `node browser_host.mjs chromium|firefox PACKAGE worker|direct [CASE...]` prints results as JSON.
 */

import { readFileSync } from "node:fs";

import { launchChromium } from "../../web/chromium.mjs";
import { servePackage } from "./server.mjs";

/** A page of that browser, and how to end it. Both drivers have `goto`, `on` and `evaluate`. */
async function open(name) {
  if (name === "chromium") {
    const browser = await launchChromium();
    return { page: await browser.newPage(), close: () => browser.close() };
  }
  const { launch } = await import("puppeteer-core");
  const executablePath = process.env.FIREFOX_PATH ?? "/usr/bin/firefox-esr";
  const browser = await launch({
    browser: "firefox",
    executablePath,
    headless: true,
    protocolTimeout: 600_000,
  });
  return { page: await browser.newPage(), close: () => browser.close() };
}

const [browser, folder, mode, ...names] = process.argv.slice(2);
const models = process.env.ONNX_MODELS ? readFileSync(process.env.ONNX_MODELS, "utf8") : "{}";
const pipelines = process.env.PIPELINE_MODELS;
const server = await servePackage(folder, { mounts: pipelines ? { "/models/": pipelines } : {} });
const { page, close } = await open(browser);
try {
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("404")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${server.url}/tests/page.html`);
  const results = await page.evaluate(
    async ([worker, names, onnx, hasPipelines]) => {
      const { cases } = await import("/tests/cases.mjs");
      const { onnxCases } = await import("/tests/onnx_cases.mjs");
      const { pipelineCases } = await import("/tests/pipeline_cases.mjs");
      const { runCases } = await import("/tests/run_cases.mjs");
      const { stopCases } = await import("/tests/stop_cases.mjs");
      const pg = await globalThis.polygrad.create({ worker });
      const chosen = names.length > 0 ? { ...cases, ...onnxCases, ...pipelineCases, ...stopCases } : cases;
      const picture = hasPipelines ? await (await fetch("/models/picture.json")).json() : [];
      const files = async (path) => {
        let folder = await navigator.storage.getDirectory();
        for (const name of path.split("/")) folder = await folder.getDirectoryHandle(name, { create: true });
        const found = [];
        for await (const name of folder.keys()) found.push(name);
        return found.sort();
      };
      const folder = (name) => `test/${name}`;
      const { progressBar } = globalThis.polygrad;
      const given = { worker, url: "/data", onnx, models: "/models", picture, folder, files, progressBar };
      // As text: Firefox's protocol leaves out a value that has come before.
      return JSON.stringify(await runCases(chosen, names, pg, given));
    },
    [mode === "worker", names, JSON.parse(models), pipelines !== undefined],
  );
  console.log(JSON.stringify({ ...JSON.parse(results), complaints }));
} finally {
  await close();
  server.close();
}
