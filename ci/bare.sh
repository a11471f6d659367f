#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel on a machine that has Python and nothing else: a bare Debian 12 without a compiler, and pip without an index.
# Says how long pip took, and how long it is from there to the first verdict: no more than 5 s of processor time.
# Needs root (or a user namespace with a range of ids), mmdebstrap, and pip for NumPy: where one is missing it says so.
# Usage: bare.sh [FOLDER] (build/simt/wheel), with what ci/wheel.sh left
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
wheels=$(realpath "${1:-build/simt/wheel}")
most=5

compgen -G "$wheels/attention_assay-*.whl" >/dev/null || {
  echo "bare: not tried, $wheels has no wheel (ci/wheel.sh)"
  exit 0
}
command -v mmdebstrap >/dev/null || {
  echo "bare: not tried, no mmdebstrap (apt-get install mmdebstrap)"
  exit 0
}
if [ "$(id -u)" -ne 0 ]; then
  exec unshare --user --map-root-user --map-auto --mount "$root/ci/bare.sh" "$@"
fi
machine=$(mktemp -d "${TMPDIR:-/tmp}/assay-bare.XXXXXX")
trap 'remove_debian "$machine"' EXIT

step "a bare Debian 12 with Python alone in $machine"
bare_debian "$machine" python3 python3-venv
mkdir "$machine/root/wheels"
# NumPy as pip picks it for that machine.
/usr/bin/python3 -m pip download -q --no-deps --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
  --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 -d "$machine/root/wheels" numpy 2>/dev/null || {
  echo "bare: not tried, pip reaches no package index"
  exit 0
}
cp "$wheels"/*.whl "$machine/root/wheels"
cp ci/tests/first_verdict.py "$machine/root"

in_debian "$machine" /root python3 -m venv venv
for tool in cc gcc c++ clang ld as; do
  ! in_debian "$machine" /root sh -c "command -v $tool" || { echo "bare: it has a compiler" >&2 && exit 1; }
done
begin=$SECONDS
in_debian "$machine" /root venv/bin/pip install -q --no-index --find-links wheels attention-assay
echo "pip install: $((SECONDS - begin)) s"
in_debian "$machine" /root venv/bin/python first_verdict.py $most
in_debian "$machine" /root venv/bin/assay --version
in_debian "$machine" /root venv/bin/assay check --kernel merge_state --property within_budget --cases 20 --quiet
echo "bare: ok"
