// SPDX-License-Identifier: Apache-2.0
// The bench alone, without the harness: one small binary to carry to a GPU machine.
// Usage: bench_decode [JSON_FILE [CELL_SUBSTRING]]
#include "kernels/bench/report.h"

int main(int argc, char **argv) {
  assay::bench::Options options;
  const auto cells =
      assay::bench::select_cells(assay::bench::standard_cells(), argc > 2 ? argv[2] : "");
  return assay::bench::run_and_report(cells, options, argc > 1 ? argv[1] : "");
}
