#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an author of kernels does, out of tree with an installed assay: each template of `assay new plugin` is built
# and passes, and fails with one line made wrong. CUDA is compiled where nvcc is, and run where
# that assay can.
# Usage: plugins.sh PREFIX [cuda] (where assay is installed; the CUDA templates alone)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
prefix=$(realpath "$1")
assay=$prefix/bin/assay
export ASSAY_PROGRAM=$assay PYTHONPATH=$root/properties/python PYTHONDONTWRITEBYTECODE=1
[ -n "${ASSAY_TOOLKIT_HIDDEN:-}" ] || PATH=$PATH:/usr/local/cuda/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect CODE COMMAND...: or what it printed, and the end.
expect() {
  local code=0
  "${@:2}" >"$work/log" 2>&1 || code=$?
  if [ "$code" -ne "$1" ]; then
    tail -n 40 "$work/log" >&2
    echo "plugins: exit $code, expected $1, in $PWD: ${*:2}" >&2
    exit 1
  fi
}

# spoil FILE SED: the mistake must change the file.
spoil() {
  cp "$1" "$work/before"
  sed -i "$2" "$1"
  if cmp -s "$1" "$work/before"; then
    echo "plugins: '$2' changes nothing in $PWD/$1" >&2
    exit 1
  fi
}

make() {
  expect 0 cmake -B build -G Ninja
  expect 0 cmake --build build
}

# right_and_wrong FILE SED REBUILD OPTION...: the kernels of OPTION pass, and fail once FILE is spoilt.
right_and_wrong() {
  expect 0 "$assay" check "${@:4}" --budget 4s
  expect 0 "$assay" explain --declaration "${@:4}"
  spoil "$1" "$2"
  $3
  expect 1 "$assay" check "${@:4}" --property within_budget --cases 10 --fail-fast
  local finding
  for finding in findings/*.case; do
    expect 1 "$assay" replay "$finding" "${@:4}"
    expect 1 "$assay" explain "$finding" "${@:4}"
  done
}

cpp() {
  expect 0 "$assay" new plugin "$work/cpp-$1" "--$1" --name quick
  cd "$work/cpp-$1"
  make
  right_and_wrong kernel.cpp "$2" make --plugin build/quick.so
}

# The kernel of specialised warps: on the executor, and compiled by nvcc.
simt() {
  expect 0 "$assay" new plugin "$work/simt" --simt --name quick
  cd "$work/simt"
  export CMAKE_PREFIX_PATH=$prefix
  if have_nvcc; then
    expect 0 cmake -B build-cuda -G Ninja -DCUDA=ON
    expect 0 cmake --build build-cuda
    expect 0 "$assay" list kernels --plugin build-cuda/quick.so
  fi
  make
  right_and_wrong kernel.cuh "$1" make --plugin build/quick.so
}

python() {
  expect 0 "$assay" new plugin "$work/python-$1" "--$1" --python
  cd "$work/python-$1"
  expect 0 /usr/bin/python3 -m pytest -q -p assay.pytest_plugin -p no:cacheprovider --assay-cases 3
  right_and_wrong kernel.py "$2" true --worker "/usr/bin/python3 -m assay.worker $3"
}

cuda() {
  expect 0 "$assay" new plugin "$work/cuda-$1" "--$1" --cuda
  cd "$work/cuda-$1"
  make
  expect 0 "$assay" list kernels --plugin build/my_kernel.so
  # Not without a GPU, and not by a program without the cuda target.
  if ! grep -q 'not runnable here' "$work/log"; then
    right_and_wrong kernel.cu "$2" make --plugin build/my_kernel.so --target cuda
  fi
}

in_cpp() {
  local work=$work/cpp
  mkdir "$work"
  (cpp paged 's/p\.sm_scale \* kLog2E/kLog2E/')
  (cpp cascade 's/state\.sum \* alpha + weight/state.sum + weight/')
  (cpp merge 's/sum += weight;/sum += 1.0f;/')
  (simt 's/full.stage.index., stage.round/& ^ 1/')
}
in_python() {
  local work=$work/python
  mkdir "$work"
  (python paged 's/ \* scale$//' kernel.py:attention)
  (python cascade 's/ \* scale, v)/, v)/' kernel.py:attention)
  (python merge 's/lse = top + log(total)/lse = top/' "kernel.py:merge_state kernel.py:merge_states")
}
in_cuda() {
  local work=$work/cuda
  mkdir "$work"
  (cuda paged 's/p\.sm_scale \* kLog2E/kLog2E/')
  (cuda cascade 's/state\.sum \* alpha + weight/state.sum + weight/')
  (cuda merge 's/sum += weight;/sum += 1.0f;/')
}

if [ "${2:-}" = cuda ]; then
  in_cuda
  echo "plugins from the templates, CUDA: ok"
  exit 0
fi
languages="C++ and NumPy"
in_python &
if have_nvcc; then
  in_cuda
  languages="C++, CUDA and NumPy"
fi
in_cpp
wait $!
echo "plugins from the templates, $languages: ok"
