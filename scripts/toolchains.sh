#!/usr/bin/env bash
# The tests of exported C compile it for other processors and with other compilers; minisign judges signatures. Installs
# Debian's when root on Debian; elsewhere those tests are skipped.
set -euo pipefail

packages=()
needs() { command -v "$1" >/dev/null || packages+=("${@:2}"); }
needs clang clang
needs tcc tcc
needs aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
needs arm-none-eabi-gcc gcc-arm-none-eabi libnewlib-arm-none-eabi
needs qemu-arm qemu-user
needs minisign minisign
if [ "${#packages[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
