// SPDX-License-Identifier: Apache-2.0
// What others write and this program reads, as the first byte says: cells of a benchmark, the
// declarations of `--declared-by`, the hello of a worker, assay.toml, libFuzzer's output, the reply
// of a process that ran a kernel. These hold for any text:
//   1. A reader takes it, or refuses it with its own error, for the user: never an internal one.
//   2. A refusal has words, all printable, on one line.
//   3. Cells and declarations that were taken are the same once written and read again.
//   4. A reply is taken whole or not at all: one that is refused leaves the tensors as they were.
#include "fuzz/json_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_json)
