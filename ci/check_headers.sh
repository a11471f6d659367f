#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone: it includes what it uses. A .cuh is compiled for the executor. The bodies of
# kernels/arch are left out: the vocabulary header in front of them includes what they need.
# check_headers.sh FILE: that one.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"

if [ $# -eq 1 ]; then
  clang++ -std=c++20 -march=x86-64-v3 -fsyntax-only -Wno-pragma-once-outside-header -I. -DASSAY_SEEDS='""' -DASSAY_KILLERS='""' -DASSAY_PROGRAM='""' -DASSAY_GATE_PLUGIN='""' -DASSAY_ABI_FOLDER='""' -x c++ "$1" && exit 0
  echo "does not compile alone: $1" >&2
  exit 1
fi
git ls-files '*.h' '*.cuh' | grep -vE '^kernels/arch/(cuda|simt)/.*\.cuh$' |
  xargs -P "$jobs" -n 1 ci/check_headers.sh
echo "headers compile alone: ok"
