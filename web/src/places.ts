/**
 * Where the package's files are, by the address of the script that a page loaded.
 *
 * The package has no copy of Pyodide, which it depends on. A folder that `polygrad-assets` made has Pyodide's files in
 * `pyodide/`; on a CDN of npm packages Pyodide's package lies beside this one.
 */

import { ASSETS, RELEASE } from "../../loader/src/assets";
import { PolygradError } from "../../wasm_runtime/src/errors";

/** The folder of the files for pages, within the package. */
const FOLDER = "dist/browser/";

/** The package's own address on a CDN, with or without a version, and a module in the CDN's own form (`+esm`). */
const SHORT = /^(.*\/polygrad)(?:@[^/]*)?(?:(?:\/[\w./-]*)?\/\+esm)?$/;
/** A file in that folder of the package, with a version or a range of versions. */
const VERSIONED = /^(.*\/polygrad)@[^/]*\/dist\/browser\/[^/]*$/;

/** The package's parent folder on a CDN. */
const CDN = /^(.*\/)polygrad@[^/]*\/dist\/browser\/$/;

function withPath(url: URL, path: string): URL {
  const moved = new URL(path, url);
  moved.search = moved.hash = "";
  return moved;
}

/**
 * The folder with the files that belong to `script`. On a CDN it is that of this very version, whatever address the page
 * loaded: files of two versions do not fit each other. Throws PolygradError where a bundler has left no address.
 */
export function folderOf(script: string | undefined): URL {
  if (script === undefined) {
    throw new PolygradError(
      "polygrad: expected the option baseURL, got none: this bundle does not know its address",
    );
  }
  const url = new URL(script);
  const [, start] = SHORT.exec(url.pathname) ?? VERSIONED.exec(url.pathname) ?? [];
  return withPath(
    url,
    start === undefined ? url.pathname.replace(/[^/]*$/, "") : `${start}@${RELEASE}/${FOLDER}`,
  );
}

/**
 * The address of the archive `name` in the folder `base` of this package's. CDNs of npm packages compress no archives, so
 * there it is that of a gzip file.
 */
export function archiveAddress(base: URL, name: string): string {
  return new URL(`python/${name}${CDN.test(base.pathname) ? ".gz" : ""}`, base).href;
}

/** The folder with Pyodide's files, for the folder `base` of this package's. */
export function pyodideFolder(base: URL): URL {
  const [, parent] = CDN.exec(base.pathname) ?? [];
  return new URL(parent === undefined ? "pyodide/" : `${parent}pyodide@${ASSETS.pyodide}/`, base);
}

/** The address of a folder, which may be given without its last slash. */
export function folderAt(address: string | URL): URL {
  const url = new URL(address, pageAddress());
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** What relative addresses are relative to. */
export function pageAddress(): string {
  if (typeof document !== "undefined") return document.baseURI;
  return location.protocol === "blob:" ? location.origin : location.href;
}
