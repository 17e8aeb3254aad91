/**
 * Serves packages as a CDN of npm packages does: from another origin than the page's, any file at an address with its
 * version, which browsers may keep for good, and with no headers but those that let other origins read.
 *
 *     /npm/polygrad@0.1.0/dist/browser/…   a file, as jsDelivr and unpkg have it
 *     /npm/polygrad@0.1.0                  the file that package.json names `jsdelivr`; also without a version
 *     /npm/polygrad@0.1.0/+esm             the module, bundled and minified once more; also of a path of `exports`
 *     /polygrad@0.1.0                      unpkg's address, which leads to that of the file
 */

import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import { build } from "esbuild";

import { PYODIDE } from "./server.mjs";

const TYPES = {
  ".gz": "application/gzip",
  ".js": "application/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".mjs": "application/javascript; charset=utf-8",
  ".wasm": "application/wasm",
  ".zip": "application/zip",
};

/** The module that `import "polygrad/…"` finds in a page, as jsDelivr's `+esm` has it. */
async function moduleOf(folder, path) {
  const { outputFiles } = await build({
    stdin: { contents: `export * from "polygrad${path}";`, resolveDir: folder },
    bundle: true,
    minify: true,
    format: "esm",
    conditions: ["browser"],
    write: false,
    logLevel: "silent",
  });
  return outputFiles[0].text;
}

/** `folder`: where the packed package is, in node_modules. `{url, version, requests, close}`; requests: [path, status]. */
export async function serveAsCdn(folder) {
  const own = join(folder, "node_modules/polygrad");
  const { version, jsdelivr, unpkg } = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
  const folders = { polygrad: own, pyodide: PYODIDE };
  const modules = new Map();
  const requests = [];
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://cdn");
    const send = (status, headers, body) => {
      requests.push([pathname, status]);
      response.writeHead(status, { "Access-Control-Allow-Origin": "*", ...headers });
      if (typeof body === "object") body.pipe(response);
      else response.end(body);
    };
    const [, npm, name, range, path = ""] =
      /^(\/npm)?\/(polygrad|pyodide)(?:@([^/]+))?(\/.*)?$/.exec(pathname) ?? [];
    if (name === undefined) return send(404, {}, "no such package");
    const isExact = range !== undefined && /^\d+\.\d+\.\d+$/.test(range);
    const cache = { "Cache-Control": `public, max-age=${isExact ? "31536000, immutable" : "604800"}` };
    if (npm === undefined && !isExact) {
      const exact =
        name === "polygrad"
          ? version
          : JSON.parse(readFileSync(join(PYODIDE, "package.json"), "utf8")).version;
      return send(302, { Location: `/${name}@${exact}${path}` });
    }
    if (npm === undefined && path === "") return send(302, { Location: pathname + unpkg.slice(1) });
    if (npm !== undefined && path.endsWith("/+esm")) {
      const entry = path.slice(0, -"/+esm".length);
      if (!modules.has(entry)) modules.set(entry, moduleOf(folder, entry));
      return send(200, { ...cache, "Content-Type": TYPES[".js"] }, await modules.get(entry));
    }
    const file = join(folders[name], path === "" ? jsdelivr : path);
    if (!existsSync(file) || !statSync(file).isFile()) return send(404, {}, "no such file");
    send(200, { ...cache, "Content-Type": TYPES[extname(file)] ?? "text/plain" }, createReadStream(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    version,
    requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
