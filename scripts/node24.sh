#!/usr/bin/env bash
# A Node 24 for the tests that compare engines, beside the Node that runs everything else.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=node_modules/.node24
[ -x "$folder/node_modules/node/bin/node" ] && exit 0
mkdir -p "$folder"
[ -f "$folder/package.json" ] || echo '{ "private": true }' > "$folder/package.json"
npm install --prefix "$folder" --no-audit --no-fund --loglevel=error node@24
