#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs BUILD_DIR as Debian packages into OUT, unpacks them into an empty folder, and runs what they hold there:
# nothing of this tree may be needed.
# Usage: packages.sh [BUILD_DIR [OUT]] (build/simt, BUILD_DIR/packages)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(realpath "${1:-build/simt}")
out=${2:-$build/packages}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "packages: $*" >&2
  exit 1
}

mkdir -p "$out"
rm -f "$out"/*.deb
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$out" >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  fail "cpack fails on $build"
}
rm -rf "$out/_CPack_Packages"
for package in "$out"/*.deb; do
  dpkg-deb --extract "$package" "$work/root"
  dpkg-deb --field "$package" Package Version Depends | paste -sd ' '
done

assay=$work/root/usr/bin/assay
[ -x "$assay" ] || exit 0 # the kernels alone
# By the names of the sonames it was linked with.
dpkg-deb --field "$out"/assay_*.deb Depends | grep -q 'libmpfi0.*libmpfr6' || fail "assay does not depend on its libraries"
! grep -q "$root/corpus" "$assay" || fail "assay names a folder of this tree"
cd "$work"
"$assay" --version
"$assay" check --kernel merge_state --property within_budget --cases 20 --json check.json --quiet ||
  fail "the unpacked program does not pass its own kernel"
grep -q "\"$work/root/usr/share/assay/findings\"" check.json || fail "the unpacked program does not find its findings"
