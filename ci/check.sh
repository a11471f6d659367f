#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job: install what is missing, build, run every property on the built-in kernels, report.
# Arguments are passed on to `assay check` (try --budget 60s, --kernel merge_state, --json FILE),
# which runs in the folder this was called from.
caller=$PWD
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"

ci/setup.sh
preset=simt target=simt
case " $* " in
  *" --target simt "* | *" --target=simt "*) ;;
  *)
    if have_gpu && have_nvcc; then
      preset=cuda target=cuda
    else
      echo "no usable GPU with nvcc here: kernels run on the CPU executor (target simt)"
    fi
    ;;
esac
case " $* " in
  *" --target"*) ;;
  *) set -- --target "$target" "$@" ;;
esac
step "build ($preset)"
build "$preset" assay
step "assay check $*"
cd "$caller"
"$root/build/$preset/assay" check "$@"
