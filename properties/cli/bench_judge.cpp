// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/bench_judge.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "oracle/judge/judge.h"
#include "oracle/judge/key_order.h"
#include "properties/run/processors.h"

namespace assay {
namespace {

using bench::SampledCascadeRows;
using bench::SampledMergeRow;
using bench::SampledRows;
using bench::TimedCall;
using bench::TimedCascade;
using bench::TimedMerge;
using bench::Verification;
template <class Rows>
using Sample = std::vector<std::unique_ptr<Rows>>;

const assay_kernel &kernel_of(const assay_plugin &plugin, const std::string &name,
                              assay_target target) {
  for (int i = 0; i < plugin.num_kernels; ++i)
    if (plugin.kernels[i].name == name && plugin.kernels[i].target == target)
      return plugin.kernels[i];
  throw std::logic_error("bench: no kernel " + name + " to judge by");
}

/// The rows of one query head of the group.
template <class Params>
Params one_head(const Params &p, int head) {
  Params one = p;
  one.num_qo_heads = 1;
  one.q = static_cast<const uint16_t *>(p.q) + head * p.q_stride_head;
  one.o = static_cast<uint16_t *>(p.o) + head * p.o_stride_head;
  one.lse = p.lse + head * p.lse_stride_head;
  return one;
}

/// `whole`: the call, its lengths on the host. A plan depends on all of them.
template <class Params, class Rows>
oracle::KernelModel model_for(const assay_kernel &kernel, const Params &whole, const Rows &rows,
                              int head) {
  oracle::KernelModel model = oracle::model_of(kernel);
  if (auto ask = oracle::ask_kernel(kernel, whole))
    model.order = [ask = std::move(ask), &whole, &rows, head](int, int) {
      return oracle::declared_order(ask, whole, rows.request, head);
    };
  model.replay_scores = true; // the bits of our MMA were measured
  return model;
}

oracle::Report judge_head(const assay_kernel &kernel, const TimedCall &call,
                          const SampledRows &rows, int member) {
  assay_paged_params whole = call.params;
  whole.kv.seq_lens = call.seq_lens.data();
  whole.kv.page_table = call.page_table.data();
  const int head = rows.kv_head * rows.params.num_qo_heads + member;
  assay_paged_params one = one_head(rows.params, member);
  if (one.alibi_slopes != nullptr) one.alibi_slopes += member;
  if (one.sinks != nullptr) one.sinks += member;
  return oracle::judge_call(one, {one.o, one.lse}, model_for(kernel, whole, rows, head));
}

oracle::Report judge_head(const assay_kernel &kernel, const TimedCascade &call,
                          const SampledCascadeRows &rows, int member) {
  assay_cascade_params whole = call.params;
  whole.levels = call.levels.data();
  const int head = rows.kv_head * rows.params.num_qo_heads + member;
  const assay_cascade_params one = one_head(rows.params, member);
  return oracle::judge_call(one, {one.o, one.lse}, model_for(kernel, whole, rows, head));
}

/// Calls f(0) .. f(n - 1) on all cores; rethrows what one of them threw.
template <class F>
void on_all_cores(size_t n, F f) {
  std::vector<std::exception_ptr> errors(n);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < n;)
      try {
        f(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  std::vector<std::thread> workers;
  for (size_t i = 0; i < std::min<size_t>(n, usable_processors()); ++i)
    workers.emplace_back(work);
  for (std::thread &worker : workers)
    worker.join();
  for (const std::exception_ptr &error : errors)
    if (error) std::rethrow_exception(error);
}

std::string describe(const std::string &row, const oracle::ElementReport &e) {
  return fmt::format("{} {}: {:.9g}, {} {:.9g} +- {:.3g} ({}{})", row,
                     e.dim < 0 ? "lse" : fmt::format("dim {}", e.dim), e.got,
                     e.verdict == oracle::Verdict::kOutside ? "outside" : "undecided against",
                     e.reference.mid, e.budget.total,
                     e.dim < 0 ? "LSE" : fmt::format("T{}", e.tier),
                     e.why.empty() ? "" : ", " + e.why);
}

/// Adds the reports judge(0) .. judge(n - 1), of `rows` rows each; `row_name(i, element)` says
/// where a finding is.
template <class JudgeOne, class RowName>
void judge_all(size_t n, int rows, JudgeOne judge, RowName row_name, Verification &out) {
  std::vector<oracle::Report> reports(n);
  on_all_cores(n, [&](size_t i) { reports[i] = judge(i); });
  out.rows += n * rows;
  for (size_t i = 0; i < n; ++i)
    for (const oracle::ElementReport &e : reports[i].findings)
      out.findings.push_back(describe(row_name(i, e), e));
}

/// Of attention: every query head of the groups.
template <class Timed, class Rows>
void judge_groups(const assay_plugin &plugin, const Timed &call, const Sample<Rows> &sample,
                  int q_len, Verification &out) {
  const assay_kernel &kernel = kernel_of(plugin, call.kernel, call.params.target);
  const int group = call.params.num_qo_heads / call.params.num_kv_heads;
  const auto member = [&](size_t i) { return static_cast<int>(i % group); };
  judge_all(
      sample.size() * group, q_len,
      [&](size_t i) { return judge_head(kernel, call, *sample[i / group], member(i)); },
      [&](size_t i, const oracle::ElementReport &e) {
        const Rows &rows = *sample[i / group];
        return fmt::format("request {}{} head {}", rows.request,
                           q_len > 1 ? fmt::format(" token {}", e.request) : "",
                           rows.kv_head * group + member(i));
      },
      out);
}

void judge_merges(const assay_plugin &plugin, const TimedMerge &call,
                  const Sample<SampledMergeRow> &sample, Verification &out) {
  const auto model = oracle::model_of(kernel_of(plugin, call.kernel, call.target));
  judge_all(
      sample.size(), 1,
      [&](size_t i) {
        const assay_merge_states_params &p = sample[i]->params;
        return oracle::judge_call(p, {p.o, p.lse}, model);
      },
      [&](size_t i, const oracle::ElementReport &) {
        return fmt::format("row {} head {}", sample[i]->row, sample[i]->head);
      },
      out);
}

} // namespace

bench::Judges bench_judges(const assay_plugin &plugin) {
  return {.paged =
              [&plugin](const TimedCall &call, const auto &sample, Verification &out) {
                judge_groups(plugin, call, sample, call.params.q_len, out);
              },
          .cascade = [&plugin](const TimedCascade &call, const auto &sample,
                               Verification &out) { judge_groups(plugin, call, sample, 1, out); },
          .merge = [&plugin](const TimedMerge &call, const auto &sample,
                             Verification &out) { judge_merges(plugin, call, sample, out); }};
}

} // namespace assay
