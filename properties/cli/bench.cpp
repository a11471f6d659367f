// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <fmt/format.h>

#include "kernels/bench/cells/cells_file.h"
#include "properties/cli/session.h"

#ifdef ASSAY_WITH_CUDA
#include "kernels/bench/report.h"
#include "properties/cli/bench_judge.h"
#endif

namespace assay {
namespace {

/// Cells of --cells, else the standard ones, less what --only leaves out.
bench::CellSet chosen_cells(const CliOptions &options) {
  bench::CellSet cells;
  try {
    cells = options.cells.empty() ? bench::standard_cell_set() : bench::read_cells(options.cells);
  } catch (const std::invalid_argument &e) {
    throw CliError(kExitUsage, e.what());
  }
  cells = bench::select_cells(cells, options.only);
  if (cells.size() == 0)
    throw CliError(kExitUsage, fmt::format("--only: no cell's name contains '{}'", options.only));
  return cells;
}

} // namespace

int command_bench(Session &session) {
  const bench::CellSet cells = chosen_cells(session.options);
#ifdef ASSAY_WITH_CUDA
  bench::Options options;
  if (session.options.verify) options.judges = bench_judges(*session.plugin);
  options.tree_splits = session.options.tree_splits;
  nlohmann::json document;
  const int exit = bench::run_and_report(cells, options,
                                         session.options.json_to_out() ? stderr : stdout, document);
  return document.is_null() ? exit : session.finish(document, exit);
#else
  session.streams.err << "assay: bench: this build has no cuda target (no nvcc was found)\n";
  return kExitUnsupported;
#endif
}

} // namespace assay
