#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone: it includes what it uses. A .cuh is compiled for the executor. The bodies of
# kernels/arch are left out: the vocabulary header in front of them includes what they need. Headers of templates are
# left out, too: they need an installed assay (plugins.sh). Headers that need the CUDA toolkit are compiled where it is;
# the others never see it. Those of the oracle are device code: nvcc compiles them.
#   check_headers.sh                 all
#   check_headers.sh --built FOLDER  those that need no toolkit, but those that this build compiled alone (compiled_first.py)
#   check_headers.sh --toolkit       those that need it, with nvcc
#   check_headers.sh FILE            that one
# The standard headers that one reaches anyway are read precompiled (header_prefix.py): half of the time.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
# Each is refused below when it would compile without the toolkit, so the list cannot grow stale.
of_toolkit=(
  kernels/bench/cell_run.cuh
  kernels/bench/device.cuh
  kernels/bench/floor.cuh
  kernels/bench/host_time.cuh
  kernels/bench/ranks/exchange_data.cuh
  kernels/bench/ranks/nccl.h
  kernels/bench/ranks/ranks.cuh
  kernels/bench/ranks/sharded_decode.cuh
  kernels/bench/versus/versus.cuh
  oracle/device/buffer.h
  oracle/tests/managed_memory.h
  properties/sut/late_writer.h
)

# clang ARGUMENT...: with what every header is compiled with
clang() {
  clang++ -std=c++20 -march=x86-64-v3 -Wno-pragma-once-outside-header -I. -DASSAY_SEEDS='""' -DASSAY_KILLERS='""' \
    -DASSAY_PROGRAM='""' -DASSAY_GATE_PLUGIN='""' -DASSAY_ABI_FOLDER='""' "$@"
}
compiles() { clang -fsyntax-only "${@:2}" -x c++ "$1"; }

case ${1-} in
--precompile)
  clang -x c++-header "$2" -o "$2.pch"
  exit
  ;;
--with)
  with=()
  [ "$2" = - ] || with=(-include-pch "$prefixes/$2.h.pch")
  compiles "$3" "${with[@]}" && exit 0
  echo "does not compile alone: $3" >&2
  exit 1
  ;;
esac

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
device_code=$(git ls-files 'oracle/device/*.cuh')

# With nvcc and the toolkit that it belongs to; clang looks for headers in CPATH.
with_toolkit() {
  printf '%s\n' "${of_toolkit[@]}" |
    CPATH=$(dirname "$(dirname "$(realpath "$nvcc")")")/include xargs -P "$jobs" -n 1 ci/check_headers.sh
  echo "$device_code" | xargs -P "$jobs" -n 1 ci/check_headers.sh
}

# without_toolkit [BUILD]: all, or all but those that this build compiled alone.
without_toolkit() {
  local header
  hide_toolkit
  for header in "${of_toolkit[@]}"; do
    if compiles "$header" 2>/dev/null; then
      echo "compiles without the CUDA toolkit, and ci/check_headers.sh lists it among those that need it: $header" >&2
      exit 1
    fi
  done
  prefixes=$(mktemp -d)
  export prefixes
  trap 'rm -rf "$prefixes"' EXIT
  : >"$prefixes/built"
  [ $# -eq 0 ] || ci/compiled_first.py "$1" >"$prefixes/built"
  git ls-files '*.h' '*.cuh' | grep -vE '^(kernels/arch/(cuda|simt)|properties/plugins/templates)/.*\.cuh$' |
    grep -vxF "$(printf '%s\n' "${of_toolkit[@]}" "$device_code")" | grep -vxFf "$prefixes/built" |
    /usr/bin/python3 -B ci/header_prefix.py "$prefixes" >"$prefixes/headers"
  find "$prefixes" -name '*.h' -print0 | xargs -0 -P "$jobs" -n 1 ci/check_headers.sh --precompile
  xargs -P "$jobs" -n 2 ci/check_headers.sh --with <"$prefixes/headers"
  echo "headers compile alone: $(wc -l <"$prefixes/headers") here, $(wc -l <"$prefixes/built") as a build compiled them"
}

case ${1-} in
--toolkit) with_toolkit ;;
--built) without_toolkit "$2" ;;
'')
  if have_nvcc; then with_toolkit; fi
  without_toolkit
  ;;
*)
  if [[ $1 =~ ^oracle/device/.*\.cuh$ ]]; then
    echo "#include \"$1\"" | "$nvcc" -std=c++20 -arch=sm_90a -I. -x cu -ptx -o /dev/null - && exit 0
  else
    compiles "$1" && exit 0
  fi
  echo "does not compile alone: $1" >&2
  exit 1
  ;;
esac
