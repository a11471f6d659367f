// SPDX-License-Identifier: Apache-2.0
// The entry points of assay_judge.h for host memory.
#include <algorithm>
#include <span>

#include "oracle/judge/judge_entry.h"
#include "oracle/judge/sharpness.h"

namespace assay::oracle {
namespace {

/// Judges rows on several threads; reports are joined in the order of the rows.
Report judge_rows(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const std::vector<int> &chosen, int threads) {
  constexpr size_t kRowsOfATask = 4; // rows of one request share their keys
  const size_t tasks = (chosen.size() + kRowsOfATask - 1) / kRowsOfATask;
  std::vector<Report> reports(tasks);
  on_threads(tasks, threads, [&](size_t task) {
    const size_t first = task * kRowsOfATask;
    const size_t last = std::min(chosen.size(), first + kRowsOfATask);
    reports[task] = judge_some(rows, outputs, model, std::span(chosen).subspan(first, last - first),
                               certified_sample());
  });
  Report all;
  for (const Report &report : reports)
    all.merge(report);
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
