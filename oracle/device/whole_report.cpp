// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/whole_report.h"

#include <algorithm>
#include <cmath>
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

/// Pairs in the order in which they are judged here as well, as long as there is time: the first,
/// the last, those that are nearly outside there as one, and others, spread evenly.
std::vector<RowHead> candidates(const RowOutputs &out, const TierReport &there) {
  constexpr int64_t kMostSpread = 64;
  const int64_t pairs = int64_t{out.rows()} * out.heads, steps = std::min(pairs, kMostSpread);
  std::vector<RowHead> spread;
  // From both ends to the middle, so that the first and the last are there.
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t step = i % 2 == 0 ? i / 2 : steps - 1 - i / 2;
    const int64_t at = steps == 1 ? 0 : step * (pairs - 1) / (steps - 1);
    spread.push_back({static_cast<int>(at / out.heads), static_cast<int>(at % out.heads)});
  }
  spread.insert(spread.begin() + std::min<int64_t>(steps, 2), there.near.begin(), there.near.end());
  return spread;
}

/// The pairs of those that are inside there, once each.
std::vector<RowHead> sample_of(const CallRows &rows, const TierReport &there) {
  constexpr size_t kMostPairs = 64, kLeastPairs = 3;
  constexpr int64_t kMostKeys = int64_t{1} << 17; // a tenth of a second
  const RowOutputs &out = outputs_of(rows);
  const auto *attention = std::get_if<AttentionRows>(&rows);
  std::vector<bool> left(there.rows.size());
  for (size_t at = 0; at < left.size(); ++at)
    left[at] = there.rows[at].inside != 0;
  std::vector<RowHead> sample;
  int64_t keys = 0;
  for (const RowHead &pair : candidates(out, there)) {
    if (sample.size() == kMostPairs || (keys >= kMostKeys && sample.size() >= kLeastPairs)) break;
    const size_t at = static_cast<size_t>(pair.row) * static_cast<size_t>(out.heads) +
                      static_cast<size_t>(pair.head);
    if (!left[at]) continue;
    left[at] = false;
    sample.push_back(pair);
    keys += attention == nullptr ? 1 : attention->keys(pair.row);
  }
  return sample;
}

/// Why the host's report of a pair that is inside there cannot be: its row as one is held to the
/// same bound, but where that is nearly outside.
const char *disagreement(const TierRow &there, const Report &here) {
  if (here.verdict != Verdict::kInside && here.worst.dim != ElementReport::kRow)
    return "is inside on the GPU alone";
  if (there.near != 0) return nullptr;
  return same_row_ratio(here.worst_ratio_row, there.worst[4])
             ? nullptr
             : "as one is something else on the GPU";
}

/// The sample is judged again here, in more directions; those findings are added.
void judge_sample(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const TierReport &there, const Memory &memory, int threads, Report &all) {
  const std::vector<RowHead> sample = sample_of(rows, there);
  const auto heads = static_cast<size_t>(outputs_of(rows).heads);
  std::vector<Report> reports(sample.size());
  on_threads(sample.size(), threads, [&](size_t i) {
    reports[i] = judge_one(rows, outputs, model, sample[i].row, sample[i].head, memory);
  });
  for (size_t i = 0; i < sample.size(); ++i) {
    const RowHead &at = sample[i];
    const TierRow &row =
        there.rows[static_cast<size_t>(at.row) * heads + static_cast<size_t>(at.head)];
    if (const char *why = disagreement(row, reports[i]))
      throw std::logic_error("oracle: row " + std::to_string(at.row) + " head " +
                             std::to_string(at.head) + " " + why);
    all.add_whole_rows(reports[i]);
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
