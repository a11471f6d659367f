#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job: install what is missing, build, run every property on the built-in kernels, report.
# Arguments are passed on to `assay check` (try --budget 60s, --kernel merge_state, --json FILE).
. "$(dirname "$0")/lib.sh"

ci/setup.sh
preset=simt target=simt
if have_gpu && have_nvcc; then
  preset=cuda target=cuda
else
  echo "no usable GPU with nvcc here: kernels run on the CPU executor (target simt)"
fi
step "build ($preset)"
build "$preset" assay
step "assay check --target $target $*"
"build/$preset/assay" check --target "$target" "$@"
