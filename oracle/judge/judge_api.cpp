// SPDX-License-Identifier: Apache-2.0
// The entry points of assay_judge.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "kernels/abi/assay_judge.h"
#include "oracle/bounds/declaration.h"
#include "oracle/judge/arrays.h"
#include "oracle/judge/judge.h"

namespace assay::oracle {
namespace {

std::string &last_error() {
  thread_local std::string message;
  return message;
}

/// Rows to judge: all, or the first, the last, those of the longest request, and others between.
std::vector<int> chosen_rows(const CallRows &rows, int max_rows) {
  const int count = outputs_of(rows).rows();
  std::set<int> chosen;
  if (max_rows == 0 || max_rows >= count) {
    for (int row = 0; row < count; ++row)
      chosen.insert(row);
    return {chosen.begin(), chosen.end()};
  }
  chosen.insert(0);
  if (static_cast<int>(chosen.size()) < max_rows) chosen.insert(count - 1);
  if (const auto *attention = std::get_if<AttentionRows>(&rows)) {
    int longest = 0;
    for (int row = 1; row < count; ++row)
      if (attention->keys(row) > attention->keys(longest)) longest = row;
    if (static_cast<int>(chosen.size()) < max_rows) chosen.insert(longest);
  }
  for (int64_t i = 0; i < max_rows && static_cast<int>(chosen.size()) < max_rows; ++i)
    chosen.insert(static_cast<int>(i * count / max_rows));
  return {chosen.begin(), chosen.end()};
}

/// One (row, head) in 64 is recomputed in interval arithmetic, of long rows one in 1,024: a key
/// costs about 20 us.
CertifySample certified_sample() {
  const auto hash = [](int row, int head) {
    return (uint64_t(uint32_t(row)) * 0x9e3779b97f4a7c15u) ^
           (uint64_t(uint32_t(head)) * 0xc2b2ae3d27d4eb4fu);
  };
  return {.row =
              [hash](int row, int head, size_t keys) {
                return (hash(row, head) >> 17) % (keys <= 512 ? 64 : 1024) == 0;
              },
          .dims = [](int, int) { return std::vector<int>{0}; }};
}

/// Judges rows on several threads; reports are joined in the order of the rows.
Report judge_rows(const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
                  const std::vector<int> &chosen, int threads) {
  constexpr size_t kRowsOfATask = 4; // of one request they share their keys
  const size_t tasks = (chosen.size() + kRowsOfATask - 1) / kRowsOfATask;
  std::vector<Report> reports(tasks);
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex guard;
  const auto work = [&] {
    try {
      for (size_t task; (task = next++) < tasks;) {
        const size_t first = task * kRowsOfATask;
        const size_t last = std::min(chosen.size(), first + kRowsOfATask);
        reports[task] =
            judge_some(rows, outputs, model, std::span(chosen).subspan(first, last - first),
                       certified_sample());
      }
    } catch (...) {
      const std::lock_guard lock(guard);
      error = std::current_exception();
      next = tasks;
    }
  };
  const size_t cores = threads > 0 ? static_cast<size_t>(threads)
                                   : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min(cores, tasks); ++i)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
  if (error) std::rethrow_exception(error);
  Report all;
  for (const Report &report : reports)
    all.merge(report);
  return all;
}

double either(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); }

void fill(const Report &from, const std::vector<int> &chosen, int rows, assay_judge_report &to) {
  to.verdict = from.verdict == Verdict::kInside    ? ASSAY_JUDGE_INSIDE
               : from.verdict == Verdict::kOutside ? ASSAY_JUDGE_OUTSIDE
                                                   : ASSAY_JUDGE_UNDECIDED;
  to.elements = from.elements;
  to.claimed = from.claimed;
  to.findings = from.finding_count;
  to.certified_rows = from.certified_rows;
  to.rows = rows;
  to.rows_judged = static_cast<int64_t>(chosen.size());
  to.worst_ratio = from.claimed == 0 ? NAN : either(from.worst_ratio_t0, from.worst_ratio_t1);
  to.worst_ratio_lse = from.worst_ratio_lse;
  to.median_budget = from.budgets.median();
  const ElementReport &worst = from.findings.empty() ? from.worst : from.findings.front();
  const BudgetTerms &b = worst.budget;
  to.worst = {worst.request,
              worst.head,
              worst.dim,
              0,
              worst.got,
              worst.reference.mid,
              worst.reference.rad,
              b.total,
              worst.ratio,
              {b.weights, b.p_rounding, b.accumulation, b.normalisation, b.merge, b.output_rounding,
               b.flush},
              {}};
  std::strncpy(to.worst.reason, reason_text(worst.reason), sizeof to.worst.reason - 1);
}

template <class Params>
assay_status judge(const Params *params, assay_judge_report *report) {
  last_error().clear();
  const auto refuse = [](assay_status status, const std::string &message) {
    last_error() = message;
    return status;
  };
  if (params == nullptr) return refuse(ASSAY_INVALID_ARGUMENT, "params is null");
  if (report == nullptr) return refuse(ASSAY_INVALID_ARGUMENT, "report is null");
  if (params->struct_size != sizeof(Params))
    return refuse(ASSAY_INVALID_ARGUMENT, "struct_size is " + std::to_string(params->struct_size) +
                                              ", expected " + std::to_string(sizeof(Params)));
  if (report->struct_size != sizeof(assay_judge_report))
    return refuse(ASSAY_INVALID_ARGUMENT, "report's struct_size is " +
                                              std::to_string(report->struct_size) + ", expected " +
                                              std::to_string(sizeof(assay_judge_report)));
  try {
    require_declaration(params->arithmetic);
    const CallRows rows = rows_of(*params);
    const std::vector<int> chosen = chosen_rows(rows, params->max_rows);
    const KernelModel model{.arithmetic = params->arithmetic};
    const Report judged =
        judge_rows(rows, {params->out.data, static_cast<const float *>(params->lse.data)}, model,
                   chosen, params->threads);
    fill(judged, chosen, outputs_of(rows).rows(), *report);
    return ASSAY_OK;
  } catch (const ArrayError &e) {
    return refuse(e.status(), e.what());
  } catch (const std::invalid_argument &e) {
    return refuse(ASSAY_INVALID_ARGUMENT, e.what());
  } catch (const std::exception &e) {
    return refuse(ASSAY_INTERNAL, e.what());
  }
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

const char *assay_judge_last_error(void) { return assay::oracle::last_error().c_str(); }
