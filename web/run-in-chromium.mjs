#!/usr/bin/env node
/** Runs a Python file with polygrad in headless Chromium; its output arrives live, its status is ours. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { launchChromium } from "./chromium.mjs";
import { startServer } from "./serve.mjs";

const USAGE = `usage: run-in-chromium.mjs [OPTIONS] SCRIPT [OPTIONS] [ARGS...]

Runs a Python file with polygrad in headless Chromium.

  --files A,B     files it reads; they keep their places relative to it and to the working directory
  --wheel FILE    a wheel to use instead of the polygrad that was built into web/dist
  --worker        run in a worker instead of the page's own thread
  --env N[=V],..  more environment variables for it, beside DEVICE, DEBUG and POLYGRAD_*
`;

/** Every file keeps its absolute path, below this folder of Python's file system. */
const MOUNT = "/mnt";

const VALUED = ["--files", "--wheel", "--env"];

/** Our options, which may stand on both sides of the script, the script, and its own arguments. */
function parse(argv) {
  const own = [];
  let at = 0;
  const takeOwn = () => {
    while (argv[at]?.startsWith("--") && [...VALUED, "--worker", "--help"].includes(argv[at].split("=")[0])) {
      const n = VALUED.includes(argv[at]) ? 2 : 1;
      own.push(...argv.slice(at, at + n));
      at += n;
    }
  };
  takeOwn();
  const script = argv[at++];
  takeOwn();
  const text = { type: "string", default: "" };
  const flag = { type: "boolean", default: false };
  const { values } = parseArgs({
    args: own,
    options: { files: text, wheel: text, env: text, worker: flag, help: flag },
  });
  return { ...values, script, args: argv.slice(at) };
}

const list = (text) => text.split(",").filter(Boolean);

function environment(extra) {
  const passed = Object.entries(process.env).filter(([name]) => /^(DEVICE|DEBUG|POLYGRAD_.*)$/.test(name));
  const named = list(extra).map((item) => {
    const [name, ...value] = item.split("=");
    return [name, item.includes("=") ? value.join("=") : process.env[name]];
  });
  return Object.fromEntries([...passed, ...named.filter(([, value]) => value !== undefined)]);
}

/** What happens in the page. */
async function runInPage({ worker, wheel, env, isatty, files, cwd, path, args }) {
  const output = (stream) => (text) => void window.polygradOutput(stream, text);
  const start = worker ? window.polygrad.loadWorker : window.polygrad.load;
  const python = await start({
    env,
    isatty,
    cache: false,
    ...(wheel && { wheelUrl: "dist/polygrad.whl" }),
    stdout: output("stdout"),
    stderr: output("stderr"),
  });
  for (const { path, base64 } of files) {
    await python.writeFile(
      path,
      Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)),
    );
  }
  await python.runPython(
    `import os; os.makedirs(${JSON.stringify(cwd)}, exist_ok=True); os.chdir(${JSON.stringify(cwd)})`,
  );
  return python.runScript(path, args);
}

async function main() {
  const options = parse(process.argv.slice(2));
  if (options.help || options.script === undefined) {
    process[options.help ? "stdout" : "stderr"].write(USAGE);
    return options.help ? 0 : 2;
  }
  const place = (name) => MOUNT + resolve(name);
  const files = [options.script, ...list(options.files)].map(async (name) => ({
    path: place(name),
    base64: (await readFile(name)).toString("base64"),
  }));
  const work = {
    worker: options.worker,
    wheel: options.wheel !== "",
    env: environment(options.env),
    isatty: Boolean(process.stderr.isTTY),
    files: await Promise.all(files),
    cwd: place("."),
    path: place(options.script),
    args: options.args,
  };
  const server = await startServer(options.wheel ? { wheel: resolve(options.wheel) } : {});
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const crash = new Promise((_, reject) => page.once("crash", () => reject(new Error("the page crashed"))));
    await page.exposeFunction("polygradOutput", (stream, text) => void process[stream].write(text));
    await page.goto(`${server.url}/run.html`);
    return await Promise.race([page.evaluate(runInPage, work), crash]);
  } finally {
    await browser.close();
    server.close();
  }
}

process.exitCode = await main();
