#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests: layers and directory map, unit tests and properties, 60 s of fuzzing, and, when nvcc is there, the cuda
# target compiled (and run when a GPU answers). Tests of kernels and of the executor run twice, optimised and under ASan
# and UBSan; those of parts (readers, reports, commands) under the sanitizers alone, slow ones without them.
# ASSAY_NIGHTLY=1 adds what takes long: tests in ci/nightly.txt and those that pytest marks nightly, every header alone,
# sm_80, programs for a GPU, and kernels whose sources are those of their figures. All but the cuda target runs as on a
# machine without the toolkit. The last lines say what was skipped, and why.
#
# ci/test.sh --quick: what a change most likely broke. It checks what differs from HEAD (with nothing, the last commit),
# builds the rooms where that lies, and runs their tests but for those that took more than 2 s last time.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
fuzz_seconds=60
nightly=${ASSAY_NIGHTLY:-}
kernels_unchanged="" # since their figures were recorded: nvcc need not compile them
failed=() # steps; the others run all the same
# ci/setup.sh installs one on Debian: pages must not pass unseen there.
grep -q '^ID=ubuntu' /etc/os-release || export ASSAY_REQUIRE_BROWSER=1

# attempt NAME COMMAND...: what fails is said at the end.
attempt() {
  local name=$1
  "${@:2}" || failed+=("$name")
}

page_code() {
  /usr/bin/python3 -B ci/docs.py blocks | tee build/pages.log
}

# What users of the simt build get.
users() {
  ci/consumer.sh build/simt
  ci/packages.sh build/simt
  ci/site.sh
}

without_toolkit() {
  step "build, tests (simt)"
  build simt -DASSAY_PART_TESTS=OFF
  [ -z "$nightly" ] || ci/check_headers.sh --built build/simt
  attempt "tests of simt" run_tests simt
  step "wheel, which pages install"
  attempt "wheel" ci/wheel.sh build/simt
  # Each of these keeps one core busy.
  step "code of pages; beside it: install and a user's programs, packages, site"
  users >build/users.log 2>&1 &
  local users=$!
  # shellcheck disable=SC2064 # the number of now
  trap "kill $users 2>/dev/null || true" EXIT
  attempt "code of pages" page_code
  wait $users || failed+=("install, a user's programs, packages, site")
  trap - EXIT
  cat build/users.log
  step "sanitizers (address, undefined)"
  build simt-asan-ubsan
  attempt "tests of simt-asan-ubsan" run_tests simt-asan-ubsan
  step "fuzz ($fuzz_seconds s)"
  attempt "fuzz" ci/fuzz.sh "$fuzz_seconds"
}

# Everything with the toolkit hidden, in a shell of its own: its failures reach this one by a file.
hidden_from_toolkit() {
  (
    hide_toolkit
    without_toolkit
    printf '%s\n' "${failed[@]}" >build/failed.txt
  ) || exit 1
  mapfile -t failed < <(sed '/^$/d' build/failed.txt)
}

# kernels_alone ARCHITECTURES: settings of CMake.
kernels_alone() {
  local only=()
  [ $# -eq 0 ] || only=(--only sm_90)
  # One tree for both, first without and then with the harness: nvcc compiles the kernels once.
  step "kernels alone: without anything of the harness"
  build cuda "$@" -DASSAY_HARNESS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
  local library
  library=$(find build/cuda -name 'libassay_cuda.so*' -type f)
  ci/kernel_figures.py "${only[@]}" "$library"
  # The check proves itself: one register more in the table is refused.
  if ci/kernel_figures.py "${only[@]}" "$library" <(awk -F, -v OFS=, '$1 == "sm_90" && !more { more = ++$5 } 1' kernels/decode/figures.csv) >/dev/null; then
    echo "kernel_figures.py passed a wrong table"
    exit 1
  fi
  ci/consumer.sh build/cuda
}

with_toolkit() {
  # One architecture has to do without a GPU (kernels/ADDING.md says how all are compared).
  local architectures=() with_harness
  have_gpu || [ -n "$nightly" ] || architectures=(-DASSAY_CUDA_ARCHITECTURES=90a-real)
  if [ -n "$nightly" ]; then
    step "headers that need the toolkit"
    ci/check_headers.sh --toolkit
  fi
  if have_gpu || [ -n "$nightly" ] || ! ci/kernel_figures.py --unchanged sm_90; then
    kernels_alone "${architectures[@]}"
  else
    kernels_unchanged=1
  fi
  step "cuda target"
  with_harness=(-DASSAY_HARNESS=ON -UCMAKE_DISABLE_FIND_PACKAGE_fmt -UCMAKE_DISABLE_FIND_PACKAGE_Boost)
  if have_gpu; then
    build cuda "${with_harness[@]}"
    ctest --preset cuda -L cuda
    cmake --install build/cuda --prefix build/cuda/installed >build/cuda/install.log
    ci/plugins.sh build/cuda/installed
  else
    # What only this target compiles; the rest of the harness was built and run above. Nothing of it runs: host code
    # is compiled as fast as can be.
    local targets=(assay_cuda_sut assay_oracle_device assay_judge_cuda arch_cuda_test)
    [ -z "$nightly" ] ||
      targets+=(oracle_device_cuda_test served_cuda_test big_cuda_test assay_bench assay_bench_shared exchange_bench)
    build cuda "${architectures[@]}" "${with_harness[@]}" -DASSAY_OPTIMISE=-O0 "${targets[@]}"
    cmake --install build/simt --prefix build/simt/installed >build/simt/install.log
    ci/plugins.sh build/simt/installed cuda
  fi
  ci/wheel.sh build/cuda
}

# few_tests FOLDER [CTEST-ARGUMENT...]: all but the slow ones.
few_tests() {
  ctest --test-dir "$1" "${@:2}" -E "^(${slow:-none})\$" -j "$jobs" --output-on-failure --no-label-summary | grep -vE ' Start | Passed |^$|^ +[0-9]+% tests'
}

quick() {
  local changed file room rooms=() targets=() slow="" left_out=0 costs=build/simt/Testing/Temporary/CTestCostData.txt
  changed=$(git diff --name-only HEAD && git ls-files --others --exclude-standard)
  [ -n "$changed" ] || changed=$(git diff --name-only HEAD~1)
  step "shape, pages, format of $(wc -l <<<"$changed") files"
  ci/shape.sh
  /usr/bin/python3 -B ci/docs.py check
  for file in $(grep -E '\.(h|cpp|cuh|cu|inl|c)$' <<<"$changed" || true); do
    [ ! -e "$file" ] || clang-format --dry-run --Werror "$file"
  done
  for room in kernels oracle properties fuzz corpus; do
    grep -q "^$room/" <<<"$changed" || continue
    rooms+=("$room")
    targets+=("$room/all")
  done
  [ ${#rooms[@]} -gt 0 ] || return 0
  targets+=(kernel_properties_test)
  step "build of ${rooms[*]}, and of the properties of every kernel"
  build simt "${targets[@]}"
  if [ -e "$costs" ]; then
    slow=$(awk 'NF == 3 && $3 > 2 { gsub(/[][().*+?^$|\\]/, "\\\\&", $1); print $1 }' "$costs" | paste -sd '|')
    left_out=$(awk 'NF == 3 && $3 > 2' "$costs" | wc -l)
  fi
  step "tests"
  for room in "${rooms[@]}"; do
    attempt "tests of $room" few_tests "build/simt/$room"
  done
  attempt "properties of every kernel" few_tests build/simt -R '^kernel_properties_test'
  step "left out: $left_out tests of more than 2 s; ci/test.sh runs all"
  [ ${#failed[@]} -eq 0 ]
}

if [ "${1:-}" = --quick ]; then
  quick
  exit
fi
[ $# -eq 0 ] || {
  echo "usage: ci/test.sh [--quick]" >&2
  exit 2
}
ci/setup.sh
step "torch, for tests of its operators"
ASSAY_TORCH_PYTHON=${ASSAY_TORCH_PYTHON:-$(ci/torch.sh)}
if [ -n "$ASSAY_TORCH_PYTHON" ]; then export ASSAY_TORCH_PYTHON; else unset ASSAY_TORCH_PYTHON; fi
step "shape, layers, pages, format, scripts, workflows"
ci/shape.sh
/usr/bin/python3 -B ci/docs.py check
git ls-files '*.h' '*.cpp' '*.cuh' '*.cu' '*.inl' '*.c' | xargs -n 200 -P "$jobs" clang-format --dry-run --Werror
shellcheck --external-sources ci/*.sh .clusterfuzzlite/*.sh .ci/run
/usr/bin/python3 -B ci/tests/abi_structs_test.py
/usr/bin/python3 -B ci/tests/tree_test.py
/usr/bin/python3 -B ci/tests/workflows_test.py
/usr/bin/python3 -B ci/tests/skipped_test.py
/usr/bin/python3 -B ci/tests/header_prefix_test.py
/usr/bin/python3 -B ci/tests/compiled_first_test.py
/usr/bin/python3 -B ci/tests/docs_test.py
/usr/bin/python3 -B ci/tests/programs_test.py
/usr/bin/python3 -B ci/tests/wrong_test.py
/usr/bin/python3 -B ci/tests/kernel_figures_test.py
/usr/bin/python3 -B ci/tests/trials_test.py
/usr/bin/python3 -B ci/tests/mutants_test.py
/usr/bin/python3 -B ci/tests/python_mutants_test.py
/usr/bin/python3 -B ci/tests/python_operators_test.py
/usr/bin/python3 -B ci/tests/bench_plot_test.py
/usr/bin/python3 -B ci/tests/shell_test.py
/usr/bin/python3 -B ci/workflows.py
hidden_from_toolkit
if have_nvcc; then with_toolkit; fi

step "skipped here"
/usr/bin/python3 -B ci/skipped.py build/simt build/simt-asan-ubsan
sed -n '/that are not run:/,$p' build/pages.log
[ -e build/site/html/index.html ] || echo "site: not built (pip reaches no package index)"
[ -d build/simt/wheel ] || echo "wheel: not built (pip reaches no package index)"
have_nvcc || echo "cuda target: neither compiled nor run (no nvcc)"
[ -z "$kernels_unchanged" ] || echo "kernels: not compiled by nvcc, as no source differs from those of their figures (kernels/decode/figures.sources)"
have_gpu || echo "kernels on a device: not run (no GPU answers)"
[ -n "$nightly" ] || echo "left to the night (ASSAY_NIGHTLY=1): tests in ci/nightly.txt and those marked nightly, every header alone, sm_80, programs for a GPU"
step "summary of the simt run"
grep -A 1 'tests passed' build/simt/ctest.log
[ -n "${ASSAY_TORCH_PYTHON:-}" ] || echo "torch operators: untested (pip reaches no package index)"
[ ${#failed[@]} -eq 0 ] || {
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
}
