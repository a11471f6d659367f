# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the ci scripts: root of the tree, build, target choice.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=$(nproc)

# With the seconds since the start, so that a log says where the time goes.
step() { printf '\n== %4d s  %s\n' "$SECONDS" "$*"; }

# progress PRESET LOG: standard input into the log. A build of some length prints its number of steps first, then a line at
# every tenth of them.
progress() {
  local preset=$1 log=$2 line at of shown=-1 begin=$SECONDS
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    ((BASH_REMATCH[2] >= 20)) || continue
    at=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]}
    [ $shown -ge 0 ] || printf '%s steps on %d cores\n' "$of" "$jobs" >&3
    ((10 * at / of > shown)) || continue
    shown=$((10 * at / of))
    [ $shown -eq 0 ] || printf '  %4d of %d, %d s\n' "$at" "$of" $((SECONDS - begin)) >&3
  done 3>&1 >"$log"
  [ $shown -lt 0 ] || printf 'built %s: %d steps in %d s on %d cores\n' "$preset" "$of" $((SECONDS - begin)) "$jobs"
}

# build PRESET [-D... -U...] [TARGET...]: configure and build with little said; the log's end on failure.
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
  if ! cmake --preset "$preset" "${settings[@]}" >"$log" 2>&1 ||
    ! cmake --build --preset "$preset" -j "$jobs" ${targets[0]:+--target "${targets[@]}"} 2>&1 | progress "$preset" "$log"; then
    grep -nE 'error|FAILED|Error' "$log" | head -n 20 >&2 || true
    tail -n 30 "$log" >&2
    echo "build of preset $preset failed; whole log: $log" >&2
    return 1
  fi
}

# The tests that ci/nightly.txt leaves to the night, as one regular expression for PRESET.
nightly_tests() { sed -n "s/^\(all\|$1\) //p" ci/nightly.txt | paste -sd '|'; }

# run_tests PRESET [CTEST-ARGUMENT...]: the summary, or what the failed tests printed. Without ASSAY_NIGHTLY=1 those of
# ci/nightly.txt are left out.
run_tests() {
  local preset=$1 without=()
  shift
  [ -n "${ASSAY_NIGHTLY:-}" ] || without=(-E "^($(nightly_tests "$preset"))")
  local log="build/$preset/ctest.log"
  if ! ctest --preset "$preset" "${without[@]}" "$@" >"$log" 2>&1; then
    grep -vE '^ +Start +[0-9]+: | Passed +[0-9.]+ sec$' "$log" >&2
    return 1
  fi
  grep -A 20 'tests passed' "$log"
}

have_nvcc() {
  [ -z "${ASSAY_TOOLKIT_HIDDEN:-}" ] && { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }
}
have_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }

# From here on what a machine without the CUDA toolkit has: no nvcc, and toolkit headers that refuse to be included. They
# may stand among the system's own (/usr/local/include), so each gets a namesake that is found first. The folder is the
# same for every clone, so that compiler caches stay warm.
hide_toolkit() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/assay/no-toolkit header
  mkdir -p "$folder/bin"
  for header in cuda.h cuda_runtime.h cuda_runtime_api.h cuda_bf16.h cuda_fp16.h cuda_fp8.h driver_types.h vector_types.h \
    device_launch_parameters.h mma.h cooperative_groups.h nvrtc.h cudaTypedefs.h; do
    [ -e "$folder/$header" ] ||
      echo "#error \"<$header> belongs to the CUDA toolkit, which is hidden in this step\"" >"$folder/$header"
  done
  printf '#!/bin/sh\necho "nvcc is hidden in this step" >&2\nexit 127\n' >"$folder/bin/nvcc"
  chmod +x "$folder/bin/nvcc"
  export ASSAY_TOOLKIT_HIDDEN=1 CPATH=$folder PATH=$folder/bin:$PATH
  unset LIBRARY_PATH CUDA_HOME CUDA_PATH CUDACXX
}

# bare_debian FOLDER [PACKAGE...]: a Debian 12 that has the packages and nothing else (as root, with mmdebstrap).
bare_debian() {
  local packages
  packages=$(IFS=, && echo "${*:2}")
  mmdebstrap --quiet --variant=minbase --components=main ${packages:+--include="$packages"} bookworm "$1" http://deb.debian.org/debian
  cp /etc/resolv.conf "$1/etc/resolv.conf"
  mount --rbind /proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --make-rslave "$1/proc"
  mount --make-rslave "$1/dev"
}

# The folder goes, and never what is still mounted in it.
remove_debian() {
  umount -R "$1/proc" "$1/dev" 2>/dev/null || true
  rm -rf --one-file-system "$1"
}

# in_debian FOLDER PLACE COMMAND...: nothing of this machine's environment reaches it.
in_debian() {
  # shellcheck disable=SC2016 # its own $1
  chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    bash -c 'cd "$1" && shift && exec "$@"' - "${@:2}" </dev/null
}
