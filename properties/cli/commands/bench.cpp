// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/bench/cells/cells_file.h"
#include "properties/cli/commands/commands.h"

#ifdef ASSAY_WITH_CUDA
#include "kernels/abi/kernel_table.h"
#include "kernels/bench/report.h"
#include "kernels/bench/versus/versus.h"
#include "properties/cli/commands/bench_judge.h"
#include "properties/cli/plugins/plugin_loader.h"
#endif

namespace assay {
namespace {

/// Cells of --cells, else the standard ones, less what --only leaves out.
bench::CellSet chosen_cells(const BenchOptions &options) {
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

#ifdef ASSAY_WITH_CUDA
/// What both libraries have, of the chosen ones; those must be in both.
std::vector<bench::KernelPair> pairs_of(const assay_plugin &base, const assay_plugin &head,
                                        std::vector<std::string> names) {
  const bool chosen = !names.empty();
  for (const assay_kernel &kernel : kernels_in(base))
    if (!chosen && kernel.target == ASSAY_TARGET_CUDA) names.push_back(kernel.name);
  std::vector<bench::KernelPair> out;
  for (const std::string &name : names) {
    const bench::KernelPair pair{find_kernel(base, name, ASSAY_TARGET_CUDA),
                                 find_kernel(head, name, ASSAY_TARGET_CUDA)};
    const bool both = pair.base != nullptr && pair.head != nullptr;
    if (chosen && !both)
      throw CliError(kExitUsage, fmt::format("--kernel: no cuda kernel {} in {}", name,
                                             pair.base == nullptr ? base.name : head.name));
    if (both && pair.base->family == pair.head->family) out.push_back(pair);
  }
  if (out.empty())
    throw CliError(kExitUnsupported, "--against: no cuda kernel is in both libraries");
  return out;
}

int bench_against(Session &session, const BenchOptions &asked, const bench::CellSet &cells,
                  std::FILE *text) {
  const assay_plugin *base = load_plugin(asked.against);
  nlohmann::json document;
  bench::Options options;
  options.judge = bench_judge(*session.plugin);
  const int exit = bench::versus_and_report(cells, pairs_of(*base, *session.plugin, asked.kernels),
                                            options, text, document);
  return document.is_null() ? exit : session.finish(document, exit);
}
#endif

} // namespace

int command_bench(Session &session, const BenchOptions &asked) {
  const bench::CellSet cells = chosen_cells(asked);
#ifdef ASSAY_WITH_CUDA
  std::FILE *text = session.options.json_to_out() ? stderr : stdout;
  if (!asked.against.empty()) return bench_against(session, asked, cells, text);
  bench::Options options;
  if (asked.verify) options.judge = bench_judge(*session.plugin);
  options.tree_splits = asked.tree_splits;
  options.host_only = asked.host_only;
  nlohmann::json document;
  const int exit = bench::run_and_report(cells, options, text, document);
  return document.is_null() ? exit : session.finish(document, exit);
#else
  session.streams.err
      << "assay: bench: this build has no cuda target (the preset cuda has, with nvcc)\n";
  return kExitUnsupported;
#endif
}

} // namespace assay
