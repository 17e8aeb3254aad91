#!/usr/bin/env bash
# What the slow tests of the npm package use of others: Deno and Bun, frameworks for pages, ways to Python in a page.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/ecosystem
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
# The version that Pyodide's lock file names.
if [ ! -f "$folder"/wheels/micropip-0.11.1-py3-none-any.whl ]; then
  "${PIP:-.venv/bin/pip}" download --quiet --no-deps --python-version 3.14 --only-binary :all: --dest "$folder/wheels" micropip==0.11.1
fi
if cmp -s "$folder/package.json.new" "$folder/package.json" && [ -d "$folder/node_modules/next" ]; then
  exit 0
fi
mv "$folder/package.json.new" "$folder/package.json"
npm install --prefix "$folder" --no-audit --no-fund --loglevel=error
