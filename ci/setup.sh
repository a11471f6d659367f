#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages assay needs, of Debian 12 or Ubuntu 24.04. Idempotent; silent when nothing is missing.
set -euo pipefail

# Where the two differ: Boost's packages name their version (1.81 or later is needed), and so does the runtime of
# clang's sanitizers. Ubuntu has no browser outside snap: pages are then not looked at.
boost=1.81 clang=14 browser=(chromium-headless-shell)
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$ID $VERSION_ID")
case $release in
  "ubuntu 24.04") boost=1.83 clang=18 browser=() ;;
  "ubuntu 22.04")
    echo "setup: Ubuntu 22.04 has CMake 3.22, Boost 1.74 and no toml++; needed are 3.24, 1.81 and 3.0. Use 24.04, or Debian 12" >&2
    exit 1
    ;;
esac

packages=(
  clang cmake lld ninja-build g++ python3 ccache git
  "libboost$boost-dev" "libboost-context$boost-dev"
  libgmp-dev libmpfr-dev libmpfi-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  libgtest-dev librapidcheck-dev
)
# llvm-symbolizer turns sanitizer reports into source lines; the runtime comes with the compiler.
packages+=(llvm "libclang-rt-$clang-dev")
# The Python package, its tests and its wheel.
packages+=(python3-numpy python3-pytest python3-hypothesis python3-pip python3-venv)
# Checked habits of the tree and of .github.
packages+=(clang-format shellcheck python3-yaml)
# Packages of our own, which libraries they need, and how a user's program finds them.
packages+=(dpkg-dev file pkg-config)
# The pages of reports are looked at in a browser. This one is a third smaller than chromium itself: 64 MB to fetch.
packages+=("${browser[@]}")
# The reference of the C headers in the site: 5 MB to fetch. mkdocs comes from PyPI (ci/site.sh).
packages+=(doxygen)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "setup: installing ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: run as root, or install: ${missing[*]}" >&2
    exit 1
  }
  sudo=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${sudo[@]}" apt-get update -qq &&
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
