// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/bench_judge.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "oracle/judge/verdict.h"
#include "properties/sut/sut.h"

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

/// The order in which the kernel visited the keys of the request, within the whole call: a plan
/// depends on every length.
oracle::TileOrder declared_order(const assay_kernel &kernel, const TimedCall &call,
                                 const SampledRows &rows) {
  assay_paged_params asked = call.params;
  asked.kv.seq_lens = call.seq_lens.data();
  const int head = rows.kv_head * (asked.num_qo_heads / asked.num_kv_heads);
  int32_t count = 0;
  std::vector<assay_key_tile> tiles;
  do {
    tiles.resize(count);
    if (kernel.key_order(&asked, rows.request, head, tiles.data(), count, &count) != ASSAY_OK)
      throw std::logic_error(
          fmt::format("bench: {} has no key order: {}", kernel.name, last_message(kernel)));
  } while (tiles.size() < static_cast<size_t>(count));
  oracle::TileOrder order;
  for (const assay_key_tile &tile : tiles)
    order.push_back({tile.split, tile.state, tile.begin, tile.end, tile.p_parts});
  return order;
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
                          const SampledRows &rows, int head) {
  oracle::CheckOptions options;
  if (kernel.key_order != nullptr)
    options.order = [&](int, int) { return declared_order(kernel, call, rows); };
  options.combine_stages = kernel.workspace_size != nullptr ? 1 : 0;
  options.replay_scores = true; // the bits of our MMA were measured
  return oracle::check_paged(one_head(rows.params, head), kernel.arithmetic, options);
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
