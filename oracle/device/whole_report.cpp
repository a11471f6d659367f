// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/whole_report.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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

/// Pairs that are judged here as well: the first, the last, others spread evenly.
std::vector<RowHead> sample_of(const CallRows &rows) {
  constexpr int64_t kMostPairs = 64, kMostKeys = int64_t{1} << 17; // a tenth of a second
  const RowOutputs &out = outputs_of(rows);
  const auto *attention = std::get_if<AttentionRows>(&rows);
  const int64_t pairs = int64_t{out.rows()} * out.heads, steps = std::min(pairs, kMostPairs);
  const auto keys_of = [&](int row) { return attention == nullptr ? 1 : attention->keys(row); };
  std::vector<RowHead> sample;
  int64_t keys = 0;
  // From both ends to the middle, so that short of keys the first and the last are there.
  for (int64_t i = 0; i < steps && (keys < kMostKeys || i < 3); ++i) {
    const int64_t step = i % 2 == 0 ? i / 2 : steps - 1 - i / 2;
    const int64_t at = steps == 1 ? 0 : step * (pairs - 1) / (steps - 1);
    sample.push_back({static_cast<int>(at / out.heads), static_cast<int>(at % out.heads)});
    keys += keys_of(sample.back().row);
  }
  return sample;
}

/// What is inside there is judged again here, as whole rows, too, and those findings are added.
void judge_sample(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const TierReport &there, const Memory &memory, int threads, Report &all) {
  std::vector<RowHead> sample = sample_of(rows);
  const auto heads = static_cast<size_t>(outputs_of(rows).heads);
  std::erase_if(sample, [&](const RowHead &at) {
    return there.rows[static_cast<size_t>(at.row) * heads + static_cast<size_t>(at.head)].inside ==
           0;
  });
  std::vector<Report> reports(sample.size());
  on_threads(sample.size(), threads, [&](size_t i) {
    reports[i] = judge_one(rows, outputs, model, sample[i].row, sample[i].head, memory);
  });
  for (size_t i = 0; i < sample.size(); ++i) {
    const Report &here = reports[i];
    if (here.verdict != Verdict::kInside && here.worst.dim != ElementReport::kRow)
      throw std::logic_error("oracle: row " + std::to_string(sample[i].row) + " head " +
                             std::to_string(sample[i].head) + " is inside on the GPU alone");
    all.add_whole_rows(here);
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
  Report all = decided->decided;
  for (const Report &report : open)
    all.merge(report);
  judge_sample(rows, outputs, model, *decided, there.memory, threads, all);
  return all;
}

} // namespace assay::oracle
