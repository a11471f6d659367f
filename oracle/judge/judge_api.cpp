// SPDX-License-Identifier: Apache-2.0
// The entry points of assay_judge.h for host memory.
#include <algorithm>
#include <span>

#include "oracle/judge/find_order.h"
#include "oracle/judge/judge_entry.h"
#include "oracle/judge/sharpness.h"

namespace assay::oracle {
namespace {

std::vector<RowHead> pairs_of(std::span<const int> rows, int heads) {
  std::vector<RowHead> pairs;
  for (int row : rows)
    for (int head = 0; head < heads; ++head)
      pairs.push_back({row, head});
  return pairs;
}

/// Judges rows on several threads; reports are joined in the order of the rows.
Report judge_rows(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const std::vector<int> &chosen, int threads) {
  constexpr size_t kRowsOfATask = 4; // rows of one request share their keys
  const int heads = outputs_of(rows).heads;
  const size_t tasks = (chosen.size() + kRowsOfATask - 1) / kRowsOfATask;
  std::vector<Report> reports(tasks);
  std::vector<std::vector<RowHead>> outside(tasks);
  on_threads(tasks, threads, [&](size_t task) {
    const size_t first = task * kRowsOfATask;
    const size_t last = std::min(chosen.size(), first + kRowsOfATask);
    const auto pairs = pairs_of(std::span(chosen).subspan(first, last - first), heads);
    judge_pairs(rows, outputs, model, pairs, certified_sample(),
                [&](const RowHead &pair, const Report &report) {
                  reports[task].merge(report);
                  if (report.verdict != Verdict::kInside) outside[task].push_back(pair);
                });
  });
  Report all;
  std::vector<RowHead> known;
  for (size_t task = 0; task < tasks; ++task) {
    all.merge(reports[task]);
    known.insert(known.end(), outside[task].begin(), outside[task].end());
  }
  if (const auto *attention = std::get_if<AttentionRows>(&rows))
    all.order = find_orders(*attention, outputs, model, chosen, known, threads);
  return all;
}

template <class Params>
assay_status judge(const Params *params, assay_judge_report *report) {
  return judge_entry(params, report,
                     [&](const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                         size_t &rows_judged) {
                       const std::vector<int> chosen = chosen_rows(rows, params->max_rows);
                       rows_judged = chosen.size();
                       return judge_rows(rows, outputs, model, chosen, params->threads);
                     });
}

} // namespace
} // namespace assay::oracle

assay_status assay_judge_attention(const assay_judge_attention_params *params,
                                   assay_judge_report *report) {
  return assay::oracle::judge(params, report);
}

assay_status assay_judge_merge(const assay_judge_merge_params *params, assay_judge_report *report) {
  return assay::oracle::judge(params, report);
}

assay_status assay_judge_attention_sharpness(const assay_judge_attention_params *params,
                                             assay_judge_sharpness *sharpness) {
  using namespace assay::oracle;
  return fill_entry(
      params, sharpness,
      [](const assay_judge_attention_params &p, const CallRows &rows, const KernelModel &model) {
        const Sharpness s = sharpness_of(rows, model, chosen_rows(rows, p.max_rows));
        return assay_judge_sharpness{sizeof(assay_judge_sharpness), 0, s.scaling, s.sm_scale,
                                     s.lost_weight};
      });
}

const char *assay_judge_last_error(void) { return assay::oracle::judge_last_error().c_str(); }
