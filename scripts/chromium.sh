#!/usr/bin/env bash
# Makes sure there is a Chromium for the browser tests and the demo: the one that web/chromium.mjs finds already, else
# Debian's package when root on Debian, else Playwright's own build.
set -euo pipefail
cd "$(dirname "$0")/.."

if node --input-type=module -e 'import { findChromium } from "./web/chromium.mjs"; process.exit(findChromium() ? 0 : 1)'; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
else
  npx playwright-core install chromium
fi
