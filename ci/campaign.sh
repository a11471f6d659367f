#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A campaign on this repository's kernels: installs what is missing, builds assay and the fuzz targets, fast ones and
# ones under sanitizers, and runs `assay campaign`, which goes on where DIR ended.
# Usage: campaign.sh HOURS [DIR] (8, campaign)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
hours=${1:-8}
folder=${2:-campaign}
ci/setup.sh
step "build (program, fuzz, simt-asan-ubsan)"
build program assay
build fuzz all_fuzzers
build simt-asan-ubsan all_fuzzers
step "assay campaign --hours $hours --dir $folder"
build/program/assay campaign --hours "$hours" --dir "$folder"
