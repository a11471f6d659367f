// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/judge_entry.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

namespace assay::oracle {

std::string &judge_last_error() {
  thread_local std::string message;
  return message;
}

assay_status refuse(assay_status status, const std::string &message) {
  judge_last_error() = message;
  return status;
}

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

void on_threads(size_t tasks, int threads, const std::function<void(size_t)> &body) {
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex guard;
  const auto work = [&] {
    try {
      for (size_t task; (task = next++) < tasks;)
        body(task);
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
}

namespace {

void fill_order(const FoundOrder &from, assay_judge_order &to) {
  const bool found = from.state == OrderState::kFound;
  to.state = found                             ? ASSAY_JUDGE_ORDER_FOUND
             : from.state == OrderState::kNone ? ASSAY_JUDGE_ORDER_NONE
                                               : ASSAY_JUDGE_ORDER_NOT_LOOKED_FOR;
  if (found) {
    to.tile = from.rule.tile;
    to.splits = from.splits;
    to.states = from.rule.states;
    to.backwards = from.rule.backwards ? 1 : 0;
  }
  to.pairs = from.pairs;
  to.explained = from.explained;
  to.doubts = from.doubts;
  to.doubt_row = from.doubt_row;
  to.doubt_head = from.doubt_head;
  to.doubt_ratio = from.doubt_ratio;
  std::strncpy(to.words, order_words(from).c_str(), sizeof to.words - 1);
}

double either(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); }

} // namespace

void fill_report(const Report &from, size_t rows_judged, int rows, assay_judge_report &to) {
  to.verdict = from.verdict == Verdict::kInside    ? ASSAY_JUDGE_INSIDE
               : from.verdict == Verdict::kOutside ? ASSAY_JUDGE_OUTSIDE
                                                   : ASSAY_JUDGE_UNDECIDED;
  to.elements = from.elements;
  to.claimed = from.claimed;
  to.findings = from.finding_count;
  to.certified_rows = from.certified_rows;
  to.rows = rows;
  to.rows_judged = static_cast<int64_t>(rows_judged);
  to.worst_ratio = from.claimed == 0 ? NAN : either(from.worst_ratio_t0, from.worst_ratio_t1);
  to.worst_ratio_row = from.worst_ratio_row;
  to.worst_ratio_lse = from.worst_ratio_lse;
  to.median_budget = from.budgets.median();
  const ElementReport &worst = from.worst;
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
              {b.weights,
               b.p_rounding,
               b.accumulation,
               b.normalisation,
               b.merge,
               b.output_rounding,
               b.flush,
               {}},
              {}};
  fill_order(from.order, to.order);
  std::strncpy(to.worst.reason, reason_text(worst.reason), sizeof to.worst.reason - 1);
}

} // namespace assay::oracle
