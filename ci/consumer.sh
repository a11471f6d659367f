#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR into an empty folder, moves that elsewhere, and builds and runs a user's programs
# (kernels/api/examples) against it: with find_package, and the C one with pkg-config alone.
# Usage: consumer.sh [BUILD_DIR] (build/simt)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
build=${1:-build/simt}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
  cmake --install "$build" --prefix "$work/first"
  mv "$work/first" "$work/installed"
  cmake -S kernels/api/examples -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed" \
    -DCMAKE_BUILD_TYPE=Release
  cmake --build "$work/build"
} >"$work/log" 2>&1 || {
  tail -n 40 "$work/log" >&2
  exit 1
}
ctest --test-dir "$work/build" --output-on-failure --no-tests=error | tail -n 4

library=$(find "$work/installed" -name 'libassay_*.so' ! -name 'libassay_judge.so' | sort | head -n 1)
judge=${library%/*}/libassay_judge.so
source=decode.c
[[ $library == *_cuda.so ]] && source=query_cuda.c
export PKG_CONFIG_PATH=${library%/*}/pkgconfig
# shellcheck disable=SC2046 # words are meant to be split
cc -std=c11 -o "$work/program" "kernels/api/examples/$source" $(pkg-config --cflags --libs assay) -lm \
  "-Wl,-rpath,${library%/*}"
"$work/program" >"$work/log" || {
  cat "$work/log" >&2
  exit 1
}
if nm -D --defined-only -C "$library" | grep -v ' assay_'; then
  echo "consumer: $library shows the symbols above, expected assay_* alone"
  exit 1
fi
# Where the harness was built, its program and the judge of tensors are installed too.
if [ -e "$judge" ]; then
  cc -std=c11 -o "$work/judge" kernels/api/examples/judge.c "-I${library%/*}/../include/assay" "-I${library%/*}/../../include/assay" \
    "$judge"
  LD_LIBRARY_PATH=${judge%/*} "$work/judge"
  if nm -D --defined-only -C "$judge" | grep -v ' assay_judge_'; then
    echo "consumer: $judge shows the symbols above, expected assay_judge_* alone"
    exit 1
  fi
fi
[ ! -x "$work/installed/bin/assay" ] || ci/plugins.sh "$work/installed"
echo "consumers of $build: ok"
