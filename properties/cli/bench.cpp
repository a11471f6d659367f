// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <fmt/format.h>

#include "kernels/bench/cells_file.h"
#include "properties/cli/session.h"

#ifdef ASSAY_WITH_CUDA
#include "kernels/bench/report.h"
#include "properties/cli/bench_judge.h"
#endif

namespace assay {
namespace {

/// Cells of --cells, else the standard ones, less what --only leaves out.
std::vector<bench::Cell> chosen_cells(const CliOptions &options) {
  std::vector<bench::Cell> cells;
  try {
    cells = options.cells.empty() ? bench::standard_cells() : bench::read_cells(options.cells);
  } catch (const std::invalid_argument &e) {
    throw CliError(kExitUsage, e.what());
  }
  cells = bench::select_cells(cells, options.only);
  if (cells.empty())
    throw CliError(kExitUsage, fmt::format("--only: no cell's name contains '{}'", options.only));
  return cells;
}

} // namespace

int command_bench(Session &session) {
  const std::vector<bench::Cell> cells = chosen_cells(session.options);
#ifdef ASSAY_WITH_CUDA
  bench::Options options;
  if (session.options.verify) options.judge = bench_judge(*session.plugin);
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
