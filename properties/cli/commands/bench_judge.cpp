// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/bench_judge.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "kernels/abi/kernel_table.h"
#include "oracle/bounds/block_fma.h"
#include "oracle/device/merges.h"
#include "oracle/judge/judge.h"
#include "oracle/rows/build.h"
#include "properties/run/processors.h"

namespace assay {
namespace {

const assay_kernel &kernel_of(const assay_plugin &plugin, const std::string &name,
                              assay_target target) {
  if (const assay_kernel *kernel = find_kernel(plugin, name, target)) return *kernel;
  throw std::logic_error("bench: no kernel " + name + " to judge by");
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
  const bool lse = e.dim == oracle::ElementReport::kLse;
  const std::string element = lse                                    ? "lse"
                              : e.dim == oracle::ElementReport::kRow ? "along its error"
                                                                     : fmt::format("dim {}", e.dim);
  if (!oracle::is_by_interval(e.reason))
    return fmt::format("{} {}: {:.9g}, {}", row, element, e.got, reason_text(e.reason));
  return fmt::format(
      "{} {}: {:.9g}, {} {:.9g} +- {:.3g} ({}{})", row, element, e.got,
      e.verdict == oracle::Verdict::kOutside ? "outside" : "undecided against", e.reference.mid,
      e.budget.total, lse ? "LSE" : fmt::format("T{}", e.tier),
      e.reason == oracle::Reason::kNone ? "" : fmt::format(", {}", reason_text(e.reason)));
}

constexpr size_t kMaxDecided =
    64; // rows that the device leaves open, decided here; each may be a finding

/// All outputs of a call, where they lie, by T0 and the LSE; nothing where the GPU does not take
/// it.
std::optional<oracle::TierReport> judged_by_gpu(const oracle::CallRows &rows,
                                                const oracle::CallOutputs &outputs,
                                                const oracle::KernelModel &model) {
  if (const auto *attention = std::get_if<oracle::AttentionRows>(&rows)) {
    if (!oracle::tiers_refuse(*attention, model).empty()) return std::nullopt;
    static oracle::TierJudge judge;
    return judge.judge(*attention, outputs, model, nullptr, {.first_tier_alone = true});
  }
  const auto &merges = std::get<oracle::MergeRows>(rows);
  if (!oracle::merges_refuse(merges).empty()) return std::nullopt;
  static oracle::MergeJudge judge;
  return judge.judge(merges, outputs, model);
}

/// Judges all rows of a timed call; what is left open is decided here.
std::optional<oracle::TierReport> judge_all(const bench::JudgedCall &call,
                                            const oracle::CallRows &rows,
                                            const oracle::KernelModel &model,
                                            const oracle::Memory &memory,
                                            bench::Verification &out) {
  if (call.target != ASSAY_TARGET_CUDA) return std::nullopt;
  const oracle::CallOutputs outputs{call.o, call.lse};
  std::optional<oracle::TierReport> report = judged_by_gpu(rows, outputs, model);
  if (!report) return std::nullopt;
  out.outputs += report->decided.claimed;
  out.device_ms += report->device_ms;
  const std::vector<oracle::RowHead> &open = report->doubtful;
  for (size_t i = 0; i < std::min(open.size(), kMaxDecided); ++i) {
    const oracle::Report host =
        oracle::judge_one(rows, outputs, model, open[i].row, open[i].head, memory);
    out.outputs += host.claimed;
    for (const oracle::ElementReport &e : host.findings)
      out.findings.push_back(describe(call.row_name({open[i].row, open[i].head}), e));
  }
  if (open.size() > kMaxDecided)
    out.findings.push_back(
        fmt::format("{} more rows that are not certainly inside", open.size() - kMaxDecided));
  return report;
}

/// A row that T0 puts outside on the host is one that the device left open, or the device's text
/// is wrong. Of one that is nearly outside as one the host sees more.
void require_open(const oracle::TierReport &device, const bench::SampledRow &at,
                  const oracle::Report &host) {
  const bool outside = std::any_of(host.findings.begin(), host.findings.end(),
                                   [](const oracle::ElementReport &e) { return e.tier == 0; });
  if (!outside) return;
  const auto names = [&](const std::vector<oracle::RowHead> &pairs) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const oracle::RowHead &o) {
      return o.row == at.row && o.head == at.head;
    });
  };
  const bool as_one = host.worst.dim == oracle::ElementReport::kRow && names(device.near);
  if (!as_one && !names(device.open))
    throw std::logic_error(
        fmt::format("bench: row {} head {} is inside on the device alone", at.row, at.head));
}

void judge_rows(const assay_plugin &plugin, const bench::JudgedCall &call,
                const bench::Memory &memory, bench::Verification &out) {
  const assay_kernel &kernel = kernel_of(plugin, call.kernel, call.target);
  const oracle::Memory reader(memory.read);
  const oracle::CallRows rows = oracle::rows_of(kernel.family, call.params, reader);
  const oracle::KernelModel model{.arithmetic = kernel.arithmetic,
                                  .order = oracle::ask_key_order(kernel, call.host_params),
                                  .replay_scores = oracle::has_measured_blocks(kernel.arithmetic)};
  const std::optional<oracle::TierReport> device = judge_all(call, rows, model, reader, out);
  std::vector<oracle::Report> reports(call.rows.size());
  on_all_cores(reports.size(), [&](size_t i) {
    const auto &[row, head] = call.rows[i];
    reports[i] = oracle::judge_one(rows, {call.o, call.lse}, model, row, head, reader);
  });
  out.rows += reports.size();
  for (size_t i = 0; device && i < reports.size(); ++i)
    require_open(*device, call.rows[i], reports[i]);
  for (size_t i = 0; i < reports.size(); ++i)
    for (const oracle::ElementReport &e : reports[i].findings)
      out.findings.push_back(describe(call.row_name(call.rows[i]), e));
}

} // namespace

bench::Judge bench_judge(const assay_plugin &plugin) {
  return [&plugin](const bench::JudgedCall &call, const bench::Memory &memory,
                   bench::Verification &out) { judge_rows(plugin, call, memory, out); };
}

} // namespace assay
