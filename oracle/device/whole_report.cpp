// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/whole_report.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "oracle/judge/judge_entry.h"

namespace assay::oracle {
namespace {

std::optional<TierReport> decided_there(const CallRows &rows, const CallOutputs &outputs,
                                        const KernelModel &model, const Elsewhere &there) {
  if (const auto *attention = std::get_if<AttentionRows>(&rows)) {
    if (!tiers_refuse(*attention, model).empty()) return std::nullopt;
    return there.rows(*attention, outputs, model);
  }
  const auto &merges = std::get<MergeRows>(rows);
  if (!merges_refuse(merges).empty()) return std::nullopt;
  return there.merges(merges, outputs, model);
}

Report judged_here(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   const Memory &memory, int threads) {
  std::vector<Report> reports(static_cast<size_t>(outputs_of(rows).rows()));
  on_threads(reports.size(), threads, [&](size_t row) {
    const int chosen[] = {static_cast<int>(row)};
    reports[row] = judge_some(rows, outputs, model, chosen, certified_sample(), memory);
  });
  Report all;
  for (const Report &report : reports)
    all.merge(report);
  return all;
}

/// Compares three of the rows that are inside: the first, the last, one between.
void require_agreement(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                       const TierReport &there, const Memory &memory) {
  const RowOutputs &out = outputs_of(rows);
  if (out.rows() == 0) return;
  for (const RowHead at : {RowHead{0, 0}, RowHead{out.rows() / 2, out.heads / 2},
                           RowHead{out.rows() - 1, out.heads - 1}}) {
    if (there
            .rows[static_cast<size_t>(at.row) * static_cast<size_t>(out.heads) +
                  static_cast<size_t>(at.head)]
            .inside == 0)
      continue;
    if (judge_one(rows, outputs, model, at.row, at.head, memory).verdict != Verdict::kInside)
      throw std::logic_error("oracle: row " + std::to_string(at.row) + " head " +
                             std::to_string(at.head) + " is inside on the GPU alone");
  }
}

} // namespace

Report whole_report(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                    const Elsewhere &there, int threads) {
  const std::optional<TierReport> decided = decided_there(rows, outputs, model, there);
  if (!decided) return judged_here(rows, outputs, model, there.memory, threads);
  std::vector<Report> open(decided->open.size());
  on_threads(open.size(), threads, [&](size_t i) {
    const RowHead &at = decided->open[i];
    open[i] = judge_one(rows, outputs, model, at.row, at.head, there.memory);
  });
  require_agreement(rows, outputs, model, *decided, there.memory);
  Report all = decided->decided;
  for (const Report &report : open)
    all.merge(report);
  return all;
}

} // namespace assay::oracle
