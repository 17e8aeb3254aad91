/**
 * A page with a Pyodide that polygrad's loader did not start, and an index of packages: `node plain_pyodide.mjs WHEEL
 * WHEELS CASE [SITE]` prints what it saw. WHEELS: a folder with micropip and what JupyterLite needs. SITE: that of
 * JupyterLite, with `guide.ipynb`.
 */

import { createHash } from "node:crypto";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { PYODIDE } from "./server.mjs";

const [wheel, wheels, chosen, site] = process.argv.slice(2);
const ECOSYSTEM = join(wheels, "../node_modules");

const TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript",
  mjs: "text/javascript",
  css: "text/css",
  json: "application/json",
  wasm: "application/wasm",
};

const PAGES = {
  "/": "<!doctype html><title>Pyodide</title>",
  "/simple/polygrad/": `<!doctype html><a href="/wheels/${basename(wheel)}">${basename(wheel)}</a>`,
  "/pyscript": `<!doctype html>
    <link rel="stylesheet" href="/pyscript/core.css" />
    <script type="module" src="/pyscript/core.js"></script>
    <script type="py" config='{"interpreter": "/pyodide/pyodide.mjs", "packages": ["/wheels/${basename(wheel)}"]}'>
from pyscript import display
from polygrad import Device, Tensor
display(f"{Device.DEFAULT} {(Tensor([1.0, 2.0]) @ Tensor([3.0, 4.0])).item()}", target="out")
    </script>
    <div id="out"></div>`,
};

/** Folders that are served whole. */
const FOLDERS = { "/pyscript/": join(ECOSYSTEM, "@pyscript/core/dist"), "/lite/": site };

/** The file for a path, or undefined. Pyodide looks for packages of its lock file beside itself. */
function locate(path) {
  const name = basename(path);
  for (const [start, folder] of Object.entries(FOLDERS)) {
    if (path.startsWith(start))
      return [join(folder, path.slice(start.length))].find((place) => existsSync(place));
  }
  const places = [join(PYODIDE, name), join(wheels, name), ...(name === basename(wheel) ? [wheel] : [])];
  return places.find((place) => existsSync(place));
}

/** Pyodide's lock file, but for the digests of the packages that PyPI has: Pyodide's own are built anew. */
function lockFile() {
  const lock = JSON.parse(readFileSync(join(PYODIDE, "pyodide-lock.json"), "utf8"));
  for (const entry of Object.values(lock.packages)) {
    const path = join(wheels, entry.file_name);
    if (existsSync(path)) entry.sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
  }
  return JSON.stringify(lock);
}

async function serve(headers) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://site");
    if (pathname.endsWith("/pyodide-lock.json")) return void response.writeHead(200, headers).end(lockFile());
    const page = PAGES[pathname];
    const file = page === undefined ? locate(pathname) : undefined;
    if (page === undefined && file === undefined) return void response.writeHead(404).end();
    const type = TYPES[page === undefined ? file.split(".").pop() : "html"] ?? "application/octet-stream";
    response.writeHead(200, { "Content-Type": type, ...headers });
    if (page !== undefined) response.end(page);
    else createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => server.closeAllConnections() || server.close(),
  };
}

/** In the page: installs polygrad from the index by micropip and runs `code`; what it returns, or the error. */
async function byMicropip(code) {
  const { loadPyodide } = await import("/pyodide/pyodide.mjs");
  const pyodide = await loadPyodide({ indexURL: "/pyodide/" });
  await pyodide.loadPackage("micropip");
  const index = `${window.location.origin}/simple`;
  await pyodide.runPythonAsync(
    `import micropip; await micropip.install("polygrad", index_urls=${JSON.stringify(index)})`,
  );
  try {
    return await pyodide.runPythonAsync(code);
  } catch (error) {
    return error.message.trim().split("\n").pop();
  }
}

const CASES = {
  async micropip(page, url) {
    await page.goto(`${url}/`);
    return page.evaluate(
      byMicropip,
      `
      from polygrad import Device, Tensor
      x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      g = Tensor([2.0, 3.0], requires_grad=True)
      (g * g).sum().backward()
      y = Tensor([1.0, 2.0], device="WEBGPU").exp().sum()
      str([Device.DEFAULT, (x @ x).tolist(), g.grad.tolist(), round(y.item(), 3), Tensor([1], device="INTERP").item()])
      `,
    );
  },

  async refused(page, url) {
    await page.goto(`${url}/`);
    return page.evaluate(byMicropip, "from polygrad import Tensor; Tensor([1.0]).item()");
  },

  async pyscript(page, url) {
    await page.goto(`${url}/pyscript`);
    await page.waitForFunction(() => document.getElementById("out").textContent.trim(), undefined, {
      timeout: 90_000,
    });
    return (await page.locator("#out").textContent()).trim();
  },

  /** Runs a notebook; the texts that its cells put out. */
  async jupyterlite(page, url) {
    await page.goto(`${url}/lite/notebooks/index.html?path=guide.ipynb`);
    const cells = page.locator(".jp-CodeCell");
    await cells.first().waitFor({ timeout: 60_000 });
    await page.getByRole("menuitem", { name: "Run", exact: true }).click();
    await page.getByRole("menuitem", { name: "Run All Cells", exact: true }).click();
    await page.waitForFunction(
      () => /\[\d+\]/.test([...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].pop().textContent),
      undefined,
      { timeout: 120_000 },
    );
    const outputs = (cell) => cell.locator(".jp-OutputArea-output").allInnerTexts();
    return Promise.all((await cells.all()).map(async (cell) => (await outputs(cell)).join("").trim()));
  },
};

const policy = { "Content-Security-Policy": "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'" };
const server = await serve(chosen === "refused" ? policy : {});
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") console.error(message.text());
  });
  console.log(JSON.stringify(await CASES[chosen](page, server.url)));
} finally {
  await browser.close();
  server.close();
}
