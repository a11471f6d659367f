#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel out of the program and the libraries of BUILD_DIR, installs it into a fresh virtual environment,
# and uses it there with no compiler on PATH and nothing of this tree (ci/tests/wheel_test.py). pip fetches its build
# backend, NumPy and pytest: where it reaches no package index, nothing is tried.
# Usage: wheel.sh [BUILD_DIR] (build/simt); the wheel is left in BUILD_DIR/wheel
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(realpath "${1:-build/simt}")
out=$build/wheel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf "$out"

before=$(git status --porcelain --ignored)
/usr/bin/python3 -m venv "$work/venv"
pip=$work/venv/bin/pip
if ! "$pip" download -q --no-deps -d "$work/download" scikit-build-core >"$work/log" 2>&1; then
  echo "wheel: not tried, pip reaches no package index"
  exit 0
fi
"$pip" wheel -q --no-deps -w "$out" . --config-settings cmake.define.ASSAY_BUILT="$build" 2>"$work/log" || {
  tail -n 30 "$work/log" >&2
  exit 1
}
wheel=$(echo "$out"/attention_assay-*-py3-none-linux_*.whl)
"$pip" install -q "${wheel}[test]"
after=$(git status --porcelain --ignored)
if [ "$before" != "$after" ]; then
  echo "wheel: building it has left something in the tree:"
  diff <(echo "$before") <(echo "$after")
  exit 1
fi

mkdir "$work/empty"
cp ci/tests/wheel_test.py "$work/empty"
cd "$work/empty"
env -i HOME="$work" PATH="$work/venv/bin" python -B -m pytest -q -p no:cacheprovider wheel_test.py | tail -n 5
echo "wheel: ${wheel##*/}, $(stat -c %s "$wheel" | numfmt --to=si)B: ok"
