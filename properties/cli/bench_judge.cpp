// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/bench_judge.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "oracle/judge/judge.h"
#include "oracle/judge/key_order.h"

namespace assay {
namespace {

using bench::SampledRows;
using bench::TimedCall;

const assay_kernel &kernel_of(const assay_plugin &plugin, const TimedCall &call) {
  for (int i = 0; i < plugin.num_kernels; ++i)
    if (plugin.kernels[i].name == call.kernel && plugin.kernels[i].target == call.params.target)
      return plugin.kernels[i];
  throw std::logic_error("bench: no kernel " + call.kernel + " to judge by");
}

/// The rows of one query head of the group.
assay_paged_params one_head(const assay_paged_params &p, int head) {
  assay_paged_params one = p;
  one.num_qo_heads = 1;
  one.q = static_cast<const uint16_t *>(p.q) + head * p.q_stride_head;
  one.o = static_cast<uint16_t *>(p.o) + head * p.o_stride_head;
  one.lse = p.lse + head * p.lse_stride_head;
  if (p.alibi_slopes != nullptr) one.alibi_slopes = p.alibi_slopes + head;
  if (p.sinks != nullptr) one.sinks = p.sinks + head;
  return one;
}

oracle::Report judge_head(const assay_kernel &kernel, const TimedCall &call,
                          const SampledRows &rows, int member) {
  oracle::KernelModel model = oracle::model_of(kernel);
  // Asked of the whole call: a plan depends on every length.
  assay_paged_params whole = call.params;
  whole.kv.seq_lens = call.seq_lens.data();
  const int head = rows.kv_head * rows.params.num_qo_heads + member;
  if (kernel.key_order != nullptr)
    model.order = [&](int, int) {
      return oracle::declared_order(kernel, whole, rows.request, head);
    };
  model.replay_scores = true; // the bits of our MMA were measured
  const assay_paged_params one = one_head(rows.params, member);
  return oracle::judge_call(one, {one.o, one.lse}, model);
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
  {
    std::vector<std::jthread> workers;
    for (size_t i = 0; i < std::min<size_t>(n, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back(work);
  }
  for (const std::exception_ptr &error : errors)
    if (error) std::rethrow_exception(error);
}

std::string describe(const SampledRows &rows, int member, const oracle::ElementReport &e) {
  const int head = rows.kv_head * rows.params.num_qo_heads + member;
  return fmt::format("request {}{} head {} {}: {:.9g}, {} {:.9g} +- {:.3g} ({}{})", rows.request,
                     rows.params.q_len > 1 ? fmt::format(" token {}", e.request) : "", head,
                     e.dim < 0 ? "lse" : fmt::format("dim {}", e.dim), e.got,
                     e.verdict == oracle::Verdict::kOutside ? "outside" : "undecided against",
                     e.reference.mid, e.budget.total,
                     e.dim < 0 ? "LSE" : fmt::format("T{}", e.tier),
                     e.why.empty() ? "" : ", " + e.why);
}

} // namespace

bench::Judge bench_judge(const assay_plugin &plugin) {
  return [&plugin](const TimedCall &call, const std::vector<std::unique_ptr<SampledRows>> &rows,
                   bench::Verification &out) {
    const assay_kernel &kernel = kernel_of(plugin, call);
    const int group = call.params.num_qo_heads / call.params.num_kv_heads;
    std::vector<oracle::Report> reports(rows.size() * group);
    on_all_cores(reports.size(), [&](size_t i) {
      reports[i] = judge_head(kernel, call, *rows[i / group], static_cast<int>(i % group));
    });
    out.rows += reports.size() * call.params.q_len;
    for (size_t i = 0; i < reports.size(); ++i)
      for (const oracle::ElementReport &e : reports[i].findings)
        out.findings.push_back(describe(*rows[i / group], static_cast<int>(i % group), e));
  };
}

} // namespace assay
