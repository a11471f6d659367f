// SPDX-License-Identifier: Apache-2.0
// The bench alone, without the harness: one small binary to carry to a GPU machine.
// Usage: bench_decode [JSON_FILE [CELL_SUBSTRING]]
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/bench/report.h"

int main(int argc, char **argv) {
  assay::bench::Options options;
  const auto cells =
      assay::bench::select_cells(assay::bench::standard_cell_set(), argc > 2 ? argv[2] : "");
  nlohmann::json document;
  const int exit = assay::bench::run_and_report(cells, options, stdout, document);
  if (argc > 1 && !document.is_null()) std::ofstream(argv[1]) << document.dump(1) << '\n';
  return exit;
}
