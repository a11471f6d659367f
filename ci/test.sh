#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test: layers and directory map, unit tests and properties, all but the slow ones again under
# ASan and UBSan, 60 s of fuzzing, and, when nvcc is there, the cuda target compiled (and run when a GPU answers).
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
fuzz_seconds=60

ci/setup.sh
step "shape, layers, format, scripts, workflows, headers"
ci/shape.sh
git ls-files '*.h' '*.cpp' '*.cuh' '*.cu' '*.inl' '*.c' | xargs clang-format --dry-run --Werror
shellcheck --external-sources ci/*.sh .clusterfuzzlite/*.sh .ci/run
/usr/bin/python3 -B ci/tests/tree_test.py
/usr/bin/python3 -B ci/tests/workflows_test.py
/usr/bin/python3 -B ci/workflows.py
ci/check_headers.sh
step "build and test (simt)"
build simt
run_tests simt
step "install, and a user's programs"
ci/consumer.sh build/simt
step "packages"
ci/packages.sh build/simt
step "sanitizers (address, undefined)"
build simt-asan-ubsan
run_tests simt-asan-ubsan
step "fuzz ($fuzz_seconds s)"
ci/fuzz.sh "$fuzz_seconds"
if have_nvcc; then
  # One tree for both, first without and then with the harness: nvcc compiles the kernels once.
  step "kernels alone: without anything of the harness"
  build cuda -DASSAY_HARNESS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
  library=$(find build/cuda -name 'libassay_cuda.so*' -type f)
  ci/kernel_figures.py "$library"
  # The check proves itself: one register more in the table is refused.
  if ci/kernel_figures.py "$library" <(awk -F, -v OFS=, 'NR == 2 { ++$5 } 1' kernels/decode/figures.csv) >/dev/null; then
    echo "kernel_figures.py passed a wrong table"
    exit 1
  fi
  ci/consumer.sh build/cuda
  step "cuda target"
  with_harness=(-DASSAY_HARNESS=ON -UCMAKE_DISABLE_FIND_PACKAGE_fmt -UCMAKE_DISABLE_FIND_PACKAGE_Boost)
  if have_gpu; then
    build cuda "${with_harness[@]}"
    ctest --preset cuda -L cuda
    cmake --install build/cuda --prefix build/cuda/installed >build/cuda/install.log
    ci/plugins.sh build/cuda/installed
  else
    # What only this target compiles; the rest of the harness was built and run above.
    build cuda "${with_harness[@]}" assay_cuda_sut assay_bench assay_bench_shared arch_cuda_test
    echo "no GPU answers: the cuda target was compiled for sm_80 and sm_90a, not run"
  fi
else
  echo "no nvcc: the cuda target was not built"
fi
step "summary of the simt run"
grep -A 1 'tests passed' build/simt/ctest.log
