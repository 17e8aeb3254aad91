#!/usr/bin/env bash
# What the slow tests of the npm package use of others: Deno and Bun, frameworks for pages, ways to Python in a page.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/ecosystem
pip=${PIP:-.venv/bin/pip}
mkdir -p "$folder"
cat > "$folder/package.json.new" <<'JSON'
{
  "private": true,
  "dependencies": {
    "@pyscript/core": "0.7.31",
    "@vitejs/plugin-react": "6.3.0",
    "bun": "1.4.4",
    "deno": "2.9.6",
    "next": "16.4.6",
    "react": "19.3.1",
    "react-dom": "19.3.1",
    "vite": "8.3.8"
  }
}
JSON
# Packages that a page loads into Pyodide, in the versions that its lock file names; and JupyterLite's comm, which it does not name.
packages=$(node --print '
  const { packages } = require("./node_modules/pyodide/pyodide-lock.json");
  const named = new Set(["micropip", "ipython", "jedi"]);
  for (const name of named) for (const other of packages[name].depends) named.add(other.replace("_", "-"));
  [...named].map((name) => `${name}==${packages[name].version}`).join(" ") + " comm==0.2.3";
')
if [ "$packages" != "$(cat "$folder/wheels/packages.txt" 2> /dev/null)" ]; then
  # shellcheck disable=SC2086
  "$pip" download --quiet --no-deps --python-version 3.14 --only-binary :all: --dest "$folder/wheels" $packages
  echo "$packages" > "$folder/wheels/packages.txt"
fi
jupyterlite="jupyterlite-core==0.8.6 jupyterlite-pyodide-kernel==0.8.6 jupyter-server==2.21.1"
if [ "$jupyterlite" != "$(cat "$folder/jupyterlite/packages.txt" 2> /dev/null)" ]; then
  python3 -m venv --clear "$folder/jupyterlite"
  # shellcheck disable=SC2086
  "$folder/jupyterlite/bin/pip" install --quiet $jupyterlite
  echo "$jupyterlite" > "$folder/jupyterlite/packages.txt"
fi
if cmp -s "$folder/package.json.new" "$folder/package.json" && [ -d "$folder/node_modules/next" ]; then
  exit 0
fi
mv "$folder/package.json.new" "$folder/package.json"
npm install --prefix "$folder" --no-audit --no-fund --loglevel=error
