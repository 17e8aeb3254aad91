#!/usr/bin/env bash
# A Firefox for the slow browser tests: the one that FIREFOX_PATH names, else Debian's package when root on Debian.
set -euo pipefail
if [ -x "${FIREFOX_PATH:-/usr/bin/firefox-esr}" ]; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends firefox-esr
else
  echo "firefox: expected FIREFOX_PATH or /usr/bin/firefox-esr, got neither: its tests will be skipped" >&2
fi
