// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

nlohmann::json to_json(const CellResult &r, const std::string &kernel, const Timing &t) {
  nlohmann::json j = {{"cell", r.cell.name},
                      {"kernel", kernel},
                      {"kv_dtype", name_of(r.cell.kv_dtype)},
                      {"bytes", r.bytes},
                      {"us", t.us},
                      {"early_us", t.early_us},
                      {"floor_us", r.floor.us},
                      {"floor_early_us", r.floor.early_us},
                      {"floor_fraction", r.floor.us / t.us},
                      {"early_fraction", r.floor.us / t.early_us},
                      {"plan_us", r.plan_us},
                      {"peers", nlohmann::json::object()}};
  if (const auto verified = r.verified.find(kernel); verified != r.verified.end()) {
    j["verified_rows"] = verified->second.rows;
    j["findings"] = verified->second.findings;
  }
  return j;
}

/// What was wrong with the outputs of a cell. Counts what was looked at.
void print_findings(const CellResult &r, std::FILE *text, uint64_t &rows, size_t &findings) {
  for (const auto &[kernel, verified] : r.verified) {
    rows += verified.rows;
    findings += verified.findings.size();
    for (const std::string &line : verified.findings)
      std::fprintf(text, "FINDING %s %s: %s\n", r.cell.name.c_str(), kernel.c_str(), line.c_str());
  }
}

std::string today() {
  char buffer[16];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d", &utc);
  return buffer;
}

} // namespace

int run_and_report(const std::vector<Cell> &cells, const Options &options, std::FILE *text,
                   nlohmann::json &document) {
  DeviceInfo device;
  std::string error;
  if (!device_info(device, error)) {
    std::fprintf(stderr, "bench: no CUDA device: %s\n", error.c_str());
    return 3;
  }
  nlohmann::json results = nlohmann::json::array();
  int failed = 0;
  uint64_t rows = 0;
  size_t findings = 0;
  std::fprintf(text,
               "%s, %d SMs; floor fraction = plain read of the same bytes / kernel, cold L2\n",
               device.name.c_str(), device.multiprocessors);
  std::fprintf(text, "%-28s %8s | %27s | %27s | %15s | %s\n", "", "", "us, one after the other",
               "us, started early", "fraction", "");
  std::fprintf(text, "%-28s %8s | %9s %8s %8s | %9s %8s %8s | %7s %7s | %s\n", "cell", "KV MB",
               "floor", "v1", "v2", "floor", "v1", "v2", "after", "early", "plan us");
  for (const Cell &cell : cells) {
    const CellResult r = run_cell(cell, options);
    if (!r.error.empty()) {
      std::fprintf(text, "%-28s failed: %s\n", cell.name.c_str(), r.error.c_str());
      ++failed;
      continue;
    }
    for (const auto &[kernel, timing] : r.kernels)
      results.push_back(to_json(r, kernel, timing));
    const Timing &v1 = r.kernels.at("paged_attention_v1"), &v2 = r.kernels.at("paged_attention_v2");
    std::fprintf(text, "%-28s %8.1f | %9.2f %8.2f %8.2f | %9.2f %8.2f %8.2f | %7.3f %7.3f | %.2f\n",
                 cell.name.c_str(), r.bytes * 1e-6, r.floor.us, v1.us, v2.us, r.floor.early_us,
                 v1.early_us, v2.early_us, r.floor.us / std::min(v1.us, v2.us),
                 r.floor.us / std::min(v1.early_us, v2.early_us), r.plan_us);
    print_findings(r, text, rows, findings);
    std::fflush(text);
  }
  if (options.judge)
    std::fprintf(text, "verified %llu rows by the oracle and every element twice: %zu findings\n",
                 static_cast<unsigned long long>(rows), findings);
  document = {{"device", device.name},
              {"driver", device.driver},
              {"commit", ASSAY_COMMIT},
              {"date", today()},
              {"cells", results}};
  return failed > 0 ? 4 : findings > 0 ? 1 : 0;
}

} // namespace assay::bench
