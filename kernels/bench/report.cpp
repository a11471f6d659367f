// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/report.h"

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "kernels/bench/today.h"

namespace assay::bench {
namespace {

/// Runs cells kind by kind and adds up what they said.
class Reporter {
public:
  Reporter(const Options &options, std::FILE *text) : options_(options), text_(text) {}

  template <class AnyCell>
  void run(CellKind kind, const std::vector<AnyCell> &cells) {
    if (cells.empty()) return;
    const std::string head = table_head(options_.host_only ? CellKind::kHost : kind);
    if (head != head_) print(head);
    head_ = head;
    for (const AnyCell &cell : cells)
      take(run_cell(cell, options_));
  }

  /// What any merge costs at least besides its bytes.
  void run_empty_launch() {
    empty_launch_us_ = time_empty("empty launch", [&] { return empty_launch_us(options_); });
  }
  /// What any call costs the host at least.
  void run_empty_launch_on_host() {
    empty_launch_host_us_ = time_empty("empty launch, host", [] { return empty_launch_host_us(); });
  }

  void finish(const DeviceInfo &device, nlohmann::json &document) const {
    if (options_.judge)
      std::fprintf(text_,
                   "judged %llu outputs on the device in %.1f ms and %llu rows on the host, every "
                   "element looked at twice: %zu findings\n",
                   static_cast<unsigned long long>(outputs_), device_ms_,
                   static_cast<unsigned long long>(rows_), findings_);
    document = {{"device", device.name},
                {"driver", device.driver},
                {"commit", ASSAY_COMMIT},
                {"date", today()},
                {"cells", results_}};
    if (empty_launch_us_ > 0) document["empty_launch_us"] = empty_launch_us_;
    if (empty_launch_host_us_ > 0) document["empty_launch_host_us"] = empty_launch_host_us_;
  }

  int exit() const { return failed_ > 0 ? 4 : findings_ > 0 ? 1 : 0; }

private:
  template <class Time>
  double time_empty(const char *what, Time time) {
    try {
      const double us = time();
      std::fprintf(text_, "%s %.2f us\n", what, us);
      return us;
    } catch (const std::exception &e) {
      std::fprintf(text_, "%s failed: %s\n", what, e.what());
      ++failed_;
      return 0;
    }
  }

  void print(const std::string &lines) { std::fputs(lines.c_str(), text_); }

  void take(const CellResult &r) {
    print(table_line(r));
    if (r.error.empty()) append_json(r, results_);
    failed_ += !r.error.empty();
    for (const auto &[kernel, verified] : r.verified) {
      rows_ += verified.rows;
      outputs_ += verified.outputs;
      device_ms_ += verified.device_ms;
      findings_ += verified.findings.size();
      for (const std::string &line : verified.findings)
        print("FINDING " + r.cell + " " + kernel + ": " + line + "\n");
    }
    std::fflush(text_);
  }

  const Options &options_;
  std::FILE *text_;
  nlohmann::json results_ = nlohmann::json::array();
  std::string head_; // printed last
  double empty_launch_us_ = 0, empty_launch_host_us_ = 0;
  int failed_ = 0;
  uint64_t rows_ = 0, outputs_ = 0;
  double device_ms_ = 0;
  size_t findings_ = 0;
};

} // namespace

int run_and_report(const CellSet &cells, const Options &options, std::FILE *text,
                   nlohmann::json &document) {
  DeviceInfo device;
  std::string error;
  if (!device_info(device, error)) {
    std::fprintf(stderr, "bench: no CUDA device: %s\n", error.c_str());
    return 3;
  }
  std::fprintf(text,
               "%s, %d SMs; floors: plain read of the same bytes, cold L2, and what else bounds "
               "a kind; fraction = floor / kernel, x floor = kernel / highest floor\n",
               device.name.c_str(), device.multiprocessors);
  Reporter reporter(options, text);
  reporter.run_empty_launch_on_host();
  reporter.run(CellKind::kDecode, cells.decode);
  reporter.run(CellKind::kCascade, cells.cascade);
  if (!cells.merge.empty() && !options.host_only) reporter.run_empty_launch();
  reporter.run(CellKind::kMerge, cells.merge);
  reporter.finish(device, document);
  return reporter.exit();
}

} // namespace assay::bench
