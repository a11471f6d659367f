# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the ci scripts: root of the tree, build, target choice.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=$(nproc)

# With the seconds since the start, so that a log says where the time goes.
step() { printf '\n== %4d s  %s\n' "$SECONDS" "$*"; }

# build PRESET [-D... -U...] [TARGET...]: configure, build quietly, show the log only on failure.
build() {
  local preset=$1 settings=() targets=()
  for argument in "${@:2}"; do
    case $argument in
    -*) settings+=("$argument") ;;
    *) targets+=("$argument") ;;
    esac
  done
  mkdir -p "build/$preset"
  local log="build/$preset/build.log"
  if ! { cmake --preset "$preset" "${settings[@]}" &&
    cmake --build --preset "$preset" -j "$jobs" ${targets[0]:+--target "${targets[@]}"}; } >"$log" 2>&1; then
    grep -nE 'error|FAILED|Error' "$log" | head -n 20 >&2 || true
    tail -n 30 "$log" >&2
    echo "build of preset $preset failed; whole log: $log" >&2
    return 1
  fi
}

# run_tests PRESET [CTEST-ARGUMENT...]: the summary, or what the failed tests printed.
run_tests() {
  local preset=$1
  shift
  local log="build/$preset/ctest.log"
  if ! ctest --preset "$preset" "$@" >"$log" 2>&1; then
    grep -vE '^ +Start +[0-9]+: | Passed +[0-9.]+ sec$' "$log" >&2
    return 1
  fi
  grep -A 20 'tests passed' "$log"
}

have_nvcc() { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }
have_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
