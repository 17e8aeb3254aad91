#!/usr/bin/env bash
# Makes sure there is a Chromium for the browser tests and the demo: the one on PATH, else Debian's package when root
# on Debian, else Playwright's own build.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v chromium >/dev/null; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
else
  npx playwright-core install chromium
fi
