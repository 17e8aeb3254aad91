/**
 * Serves a folder as hosts of static files do: below a path, and with no headers of its own choice but that browsers ask
 * again. A name may say more: `x.no-store.txt` is sent with that Cache-Control.
 */

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** `{url, paths, close}`: where the folder is, and what was asked for. */
export async function serveStatic(folder) {
  const paths = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://host").pathname.replace(/\/$/, "/index.html");
    paths.push(path);
    const file = join(folder, path.replace(/^\/project\//, ""));
    if (!path.startsWith("/project/") || !existsSync(file) || !statSync(file).isFile()) {
      return void response.writeHead(path === "/favicon.ico" ? 204 : 404).end();
    }
    response.writeHead(200, {
      "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
      "Cache-Control": path.includes(".no-store.") ? "no-store" : "no-cache",
    });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/project/`,
    paths,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
