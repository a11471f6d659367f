#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether a change of kernels may go in: installs what is missing, builds assay, and runs `assay gate` in the folder
# this was called from, which is this repository or one with an assay.toml.
# Arguments are those of `assay gate` (gate.sh --base origin/main --budget 10m). Reports of every format are left in
# ASSAY_REPORTS (build/gate/verdict of that folder); where CI shows a summary of its job, it is the Markdown.
caller=$PWD
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
ci/setup.sh
step "build (program)"
build program assay
step "assay gate $*"
cd "$caller"
reports=${ASSAY_REPORTS:-build/gate/verdict}
mkdir -p "$reports"
code=0
"$root/build/program/assay" gate "$@" --json "$reports/gate.json" --markdown "$reports/gate.md" \
  --html "$reports/gate.html" --sarif "$reports/gate.sarif" --junit "$reports/gate.xml" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$reports/gate.md" ]; then
  cat "$reports/gate.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
