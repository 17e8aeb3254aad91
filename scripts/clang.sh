#!/usr/bin/env bash
# The benchmarks' peer compiles with clang. Installs Debian's when root on Debian; elsewhere the peer is skipped.
set -euo pipefail

if ! command -v clang >/dev/null && [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends clang
fi
