#!/usr/bin/env bash
# The benchmarks' peer compiles with clang, and libpolygrad's fuzzer needs its runtime. Installs Debian's when root on
# Debian; elsewhere both are skipped.
set -euo pipefail

if [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  packages=()
  command -v clang >/dev/null || packages+=(clang)
  compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer*' >/dev/null || packages+=(libclang-rt-dev)
  command -v valgrind >/dev/null || packages+=(valgrind)
  if [ "${#packages[@]}" -gt 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
  fi
fi
