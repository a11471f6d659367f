// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/result.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

using Json = nlohmann::json;

Json decode_json(const CellResult &r, const Timing &t) {
  return {{"early_us", t.early_us},
          {"floor_early_us", r.floor.early_us},
          {"early_fraction", r.floor.us / t.early_us},
          {"plan_us", r.plan_us}};
}

Json cascade_json(const CellResult &r, const Timing &t) {
  return {{"flops", r.flops},
          {"read_us", r.floor.us},
          {"flops_us", r.flops_us()},
          {"tflops", static_cast<double>(r.flops) / t.us * 1e-6},
          {"plan_us", r.plan_us},
          {"plan_lengths_us", r.plan_lengths_us},
          {"times_floor", t.us / r.floor_us()}};
}

Json merge_json(const CellResult &r, const Timing &t) {
  return {{"read_us", r.floor.us}, {"plain_us", r.plain_us}, {"times_floor", t.us / r.floor_us()}};
}

/// The host time of a call, and of its checks.
std::string host_columns(const Timing &t) {
  return fmt::format("{:8.2f} {:7.2f}", t.host_us, t.checks_us);
}

std::string decode_line(const CellResult &r) {
  const Timing &v1 = r.kernels.at("paged_attention_v1"), &v2 = r.kernels.at("paged_attention_v2");
  return fmt::format("{:<28} {:8.1f} | {:9.2f} {:8.2f} {:8.2f} | {:9.2f} {:8.2f} {:8.2f} | {:7.3f} "
                     "{:7.3f} | {:7.2f} | {}\n",
                     r.cell, r.bytes * 1e-6, r.floor.us, v1.us, v2.us, r.floor.early_us,
                     v1.early_us, v2.early_us, r.floor.us / std::min(v1.us, v2.us),
                     r.floor.us / std::min(v1.early_us, v2.early_us), r.plan_us, host_columns(v2));
}

/// A kernel that was not asked leaves its column empty.
std::string cascade_line(const CellResult &r) {
  const auto shown = [&](const char *kernel, double scale = 1) -> std::string {
    const auto found = r.kernels.find(kernel);
    return found == r.kernels.end() ? "" : fmt::format("{:.2f}", scale * found->second.us);
  };
  const auto levels = r.kernels.find("cascade_attention");
  const bool has_levels = levels != r.kernels.end();
  return fmt::format(
      "{:<28} {:8.1f} {:8.1f} | {:9.2f} {:9.2f} | {:>9} {:>8} {:>8} | {:>9} {:>9} {:>8} | {}\n",
      r.cell, r.bytes * 1e-6, r.flops * 1e-9, r.floor.us, r.flops_us(), shown("cascade_attention"),
      shown("cascade_attention", 1 / r.floor_us()),
      has_levels ? fmt::format("{:.1f}", r.flops / levels->second.us * 1e-6) : "",
      shown("tree_attention"), shown("paged_attention_v2"),
      r.plan_us > 0 ? fmt::format("{:.2f}", r.plan_us) : "",
      host_columns(has_levels                              ? levels->second
                   : r.kernels.count("tree_attention") > 0 ? r.kernels.at("tree_attention")
                                                           : Timing{}));
}

std::string merge_line(const CellResult &r) {
  const Timing &t = r.kernels.begin()->second;
  return fmt::format("{:<28} {:8.1f} | {:9.2f} {:9.2f} | {:9.2f} {:8.2f} | {:8.2f} | {}\n", r.cell,
                     r.bytes * 1e-6, r.floor.us, r.plain_us, t.us, t.us / r.floor_us(),
                     r.bytes / t.us * 1e-6, host_columns(t));
}

std::string host_lines(const CellResult &r) {
  std::string lines;
  for (const auto &[kernel, timing] : r.kernels)
    lines += fmt::format("{:<28} {:<20} | {}\n", r.cell, kernel, host_columns(timing));
  return lines;
}

} // namespace

double CellResult::floor_us() const { return std::max({floor.us, plain_us, flops_us()}); }

void append_json(const CellResult &r, Json &cells) {
  for (const auto &[kernel, timing] : r.kernels) {
    Json j = {{"cell", r.cell},
              {"kernel", kernel},
              {"kv_dtype", r.kv_dtype},
              {"host_us", timing.host_us},
              {"checks_us", timing.checks_us}};
    if (r.kind == CellKind::kHost) {
      cells.push_back(std::move(j));
      continue;
    }
    j.update({{"bytes", r.bytes},
              {"us", timing.us},
              {"floor_us", r.floor_us()},
              {"floor_fraction", r.floor_us() / timing.us},
              {"peers", Json::object()}});
    j.update(r.kind == CellKind::kDecode    ? decode_json(r, timing)
             : r.kind == CellKind::kCascade ? cascade_json(r, timing)
                                            : merge_json(r, timing));
    if (const auto verified = r.verified.find(kernel); verified != r.verified.end()) {
      j["verified_rows"] = verified->second.rows;
      j["judged_outputs"] = verified->second.outputs;
      j["judge_ms"] = verified->second.device_ms;
      j["findings"] = verified->second.findings;
    }
    cells.push_back(std::move(j));
  }
}

std::string table_head(CellKind kind) {
  switch (kind) {
  case CellKind::kDecode:
    return fmt::format("{:<28} {:>8} | {:>27} | {:>27} | {:>15} | {:>7} | {:>16}\n", "", "",
                       "us, one after the other", "us, started early", "fraction", "",
                       "v2 on host, us") +
           fmt::format("{:<28} {:>8} | {:>9} {:>8} {:>8} | {:>9} {:>8} {:>8} | {:>7} {:>7} | {:>7} "
                       "| {:>8} {:>7}\n",
                       "cell", "KV MB", "floor", "v1", "v2", "floor", "v1", "v2", "after", "early",
                       "plan us", "call", "checks");
  case CellKind::kCascade:
    return fmt::format("{:<28} {:>17} | {:>19} | {:>27} | {:>28} | {:>16}\n", "", "", "floors, us",
                       "cascade_attention", "page table a request, us", "on host, us") +
           fmt::format("{:<28} {:>8} {:>8} | {:>9} {:>9} | {:>9} {:>8} {:>8} | {:>9} {:>9} {:>8} | "
                       "{:>8} {:>7}\n",
                       "cell", "KV MB", "GFLOP", "read", "products", "us", "x floor", "TFLOP/s",
                       "tree", "flat", "plan us", "call", "checks");
  case CellKind::kMerge:
    return fmt::format("{:<28} {:>8} | {:>19} | {:>18} | {:>8} | {:>16}\n", "", "", "floors, us",
                       "merge", "", "on host, us") +
           fmt::format("{:<28} {:>8} | {:>9} {:>9} | {:>9} {:>8} | {:>8} | {:>8} {:>7}\n", "cell",
                       "MB", "read", "plain", "us", "x floor", "TB/s", "call", "checks");
  case CellKind::kHost:
    break;
  }
  return fmt::format("{:<28} {:<20} | {:>16}\n", "", "", "on host, us") +
         fmt::format("{:<28} {:<20} | {:>8} {:>7}\n", "cell", "kernel", "call", "checks");
}

std::string table_line(const CellResult &r) {
  if (!r.error.empty()) return fmt::format("{:<28} failed: {}\n", r.cell, r.error);
  switch (r.kind) {
  case CellKind::kDecode:
    return decode_line(r);
  case CellKind::kCascade:
    return cascade_line(r);
  case CellKind::kMerge:
    return merge_line(r);
  case CellKind::kHost:
    break;
  }
  return host_lines(r);
}

} // namespace assay::bench
