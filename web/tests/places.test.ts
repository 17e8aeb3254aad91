/** Where the package's files are, for each address by which a page may load a script. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ASSETS, RELEASE } from "../../loader/src/assets";
import { archiveAddress, folderOf, pyodideFolder } from "../src/places";

const CDN = "https://cdn.example/npm";
const OWN = `${CDN}/polygrad@${RELEASE}/dist/browser/`;

test("addresses of a CDN lead to the folder of this very version", () => {
  for (const path of [
    "polygrad",
    "polygrad@0",
    `polygrad@${RELEASE}`,
    "polygrad/+esm",
    "polygrad@latest/+esm",
    "polygrad@0/runtime/+esm",
    "polygrad@0/dist/browser/polygrad.mjs/+esm",
    "polygrad@^0.1/dist/browser/polygrad.mjs",
    `polygrad@${RELEASE}/dist/browser/polygrad-worker.mjs?query#hash`,
  ]) {
    assert.equal(folderOf(`${CDN}/${path}`).href, OWN, path);
  }
  assert.equal(folderOf("https://unpkg.example/polygrad@0").pathname, `/polygrad@${RELEASE}/dist/browser/`);
});

test("other addresses lead to the script's own folder", () => {
  for (const [address, folder] of [
    ["http://localhost/polygrad/polygrad.js", "http://localhost/polygrad/"],
    ["http://localhost/polygrad/", "http://localhost/polygrad/"],
    ["http://localhost/app.js?v=1", "http://localhost/"],
    ["http://localhost/mypolygrad@2/app.js", "http://localhost/mypolygrad@2/"],
    [`${CDN}/polygrad/dist/browser/polygrad.mjs`, `${CDN}/polygrad/dist/browser/`],
    [
      "http://localhost/node_modules/polygrad/dist/browser/polygrad.mjs",
      "http://localhost/node_modules/polygrad/dist/browser/",
    ],
    [
      "file:///project/node_modules/polygrad/dist/browser/a.mjs",
      "file:///project/node_modules/polygrad/dist/browser/",
    ],
  ] as const) {
    assert.equal(folderOf(address).href, folder);
  }
});

test("an archive comes compressed from a CDN alone", () => {
  assert.equal(archiveAddress(new URL(OWN), "a.zip"), `${OWN}python/a.zip.gz`);
  for (const base of [
    "http://localhost/polygrad/",
    "http://localhost/polygrad@2/",
    `${CDN}/polygrad/dist/browser/`,
  ]) {
    assert.equal(archiveAddress(new URL(base), "a.zip"), `${base}python/a.zip`);
  }
});

test("a bundle that knows no address is told to name one", () => {
  assert.throws(() => folderOf(undefined), /expected the option baseURL, got none/);
});

test("Pyodide lies beside the files, or beside the package on a CDN", () => {
  assert.equal(
    pyodideFolder(new URL("http://localhost/polygrad/")).href,
    "http://localhost/polygrad/pyodide/",
  );
  assert.equal(pyodideFolder(new URL(OWN)).href, `${CDN}/pyodide@${ASSETS.pyodide}/`);
  assert.equal(
    pyodideFolder(folderOf("https://unpkg.example/polygrad")).pathname,
    `/pyodide@${ASSETS.pyodide}/`,
  );
});
