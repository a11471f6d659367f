// SPDX-License-Identifier: Apache-2.0
// The bench alone, without the harness: one small binary to carry to a GPU machine.
// Usage: bench_decode [--host] [JSON_FILE [CELL_SUBSTRING]]
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/bench/report.h"

int main(int argc, char **argv) {
  assay::bench::Options options;
  if (argc > 1 && std::string_view(argv[1]) == "--host") {
    options.host_only = true;
    --argc;
    ++argv;
  }
  const auto cells =
      assay::bench::select_cells(assay::bench::standard_cell_set(), argc > 2 ? argv[2] : "");
  nlohmann::json document;
  const int exit = assay::bench::run_and_report(cells, options, stdout, document);
  if (argc > 1 && !document.is_null()) std::ofstream(argv[1]) << document.dump(1) << '\n';
  return exit;
}
