// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/judged_there.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "properties/sut/device_oracle.h"

namespace assay {
namespace {

using oracle::AttentionRows;
using oracle::Report;
using oracle::RowHead;
using oracle::TierReport;

/// Elements of K that rows see, each row's counted: below this the host is done before a GPU has
/// begun.
constexpr int64_t kFewElements = 64 * 1024;

int64_t elements_seen(const AttentionRows &rows) {
  int64_t keys = 0;
  for (int row = 0; row < rows.out.rows(); ++row)
    keys += rows.keys(row);
  return keys * rows.out.heads * rows.head_dim;
}

/// Those that the GPU left open, the sample, and some that are nearly outside as one.
std::vector<RowHead> pairs_for_host(const AttentionRows &rows, const TierReport &report,
                                    const HostSample &sample) {
  constexpr size_t kMostNear = 16;
  std::vector<bool> near(report.rows.size());
  for (size_t i = 0; i < std::min(report.near.size(), kMostNear); ++i)
    near[static_cast<size_t>(report.near[i].row * rows.out.heads + report.near[i].head)] = true;
  std::vector<RowHead> pairs;
  for (int row = 0; row < rows.out.rows(); ++row)
    for (int head = 0; head < rows.out.heads; ++head) {
      const auto at = static_cast<size_t>(row * rows.out.heads + head);
      if (report.rows[at].inside == 0 || near[at] ||
          sample.again(row, head, static_cast<size_t>(rows.keys(row))))
        pairs.push_back({row, head});
    }
  return pairs;
}

} // namespace

std::string apart(const oracle::TierRow &device, const Report &host) {
  // The host looks in more directions of a row that is nearly outside as one.
  const bool elements_inside =
      host.verdict == oracle::Verdict::kInside || host.worst.dim == oracle::ElementReport::kRow;
  if (!elements_inside || host.no_claim > 0) return "it is inside on the GPU alone";
  const double of_host[] = {host.worst_ratio_t0, host.worst_ratio_t1, host.worst_ratio_t2,
                            host.worst_ratio_lse, host.worst_ratio_row};
  static constexpr const char *kNames[] = {"T0", "T1", "T2", "the LSE", "the row as one"};
  for (int i = 0; i < (device.near != 0 ? 4 : 5); ++i) {
    const double theirs = std::isnan(of_host[i]) ? -1.0 : of_host[i];
    // Sums in another order: far below this, beside every bound.
    const bool same = i == 4 ? oracle::same_row_ratio(device.worst[i], theirs)
                             : std::fabs(device.worst[i] - theirs) <= 1e-6;
    if (!same)
      return fmt::format("largest error of {}, in bounds: {:.9g} on the GPU, {:.9g} on the host",
                         kNames[i], device.worst[i], theirs);
  }
  return "";
}

std::optional<Report> judged_there(const Outcome &run, const OracleCall &call,
                                   const oracle::CallOutputs &outputs, const HostSample &sample,
                                   DeviceOracle &device) {
  const auto *rows = std::get_if<AttentionRows>(&call.rows);
  if (rows == nullptr || elements_seen(*rows) < kFewElements) return std::nullopt;
  const std::optional<TierReport> there =
      device.judge(run.before, run.after, *rows, outputs, call.model);
  if (!there) return std::nullopt;
  Report report = there->decided;
  oracle::judge_pairs(call.rows, outputs, call.model, pairs_for_host(*rows, *there, sample),
                      sample.certified, [&](const RowHead &pair, const Report &host) {
                        const auto at = static_cast<size_t>(pair.row * rows->out.heads + pair.head);
                        const oracle::TierRow &row = there->rows[at];
                        if (row.inside == 0) return report.merge(host);
                        report.add_whole_rows(host);
                        report.certified_rows += host.certified_rows;
                        if (const std::string why = apart(row, host); !why.empty())
                          throw std::logic_error(
                              fmt::format("oracle: row {} head {}: {}", pair.row, pair.head, why));
                      });
  return report;
}

} // namespace assay
