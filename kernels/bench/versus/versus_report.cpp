// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "kernels/bench/today.h"
#include "kernels/bench/versus/versus.h"

namespace assay::bench {
namespace {

/// Runs cells of every kind and keeps what they said.
class Versus {
public:
  Versus(const std::vector<KernelPair> &pairs, const Options &options, std::FILE *text)
      : pairs_(pairs), options_(options), text_(text) {}

  template <class AnyCell>
  void run(const std::vector<AnyCell> &cells) {
    for (const AnyCell &cell : cells)
      try {
        for (Duel &duel : duels(cell, pairs_, options_))
          take(std::move(duel));
      } catch (const std::exception &e) {
        ++failed_;
        fmt::print(text_, "{:<28} failed: {}\n", cell.name, e.what());
      }
  }

  /// Speeds are compared over all cells: only now.
  nlohmann::json finish() {
    std::vector<Arms> arms;
    for (const Duel &duel : duels_)
      arms.push_back(duel.us);
    const std::vector<Compared> compared = compare_speeds(arms);
    fmt::print(text_, "{:<28} {:<22} {:>10} {:>10} {:>7} {:>8}  {}\n", "cell", "kernel", "base us",
               "head us", "ratio", "control", "");
    nlohmann::json out = skipped_;
    for (size_t i = 0; i < duels_.size(); ++i)
      out.push_back(row(duels_[i], compared[i]));
    fmt::print(text_, "{} of {} slower, {} faster, {} inconclusive, {} with wrong outputs\n",
               count("slower", out), duels_.size(), count("faster", out),
               count("inconclusive", out), wrong_);
    return out;
  }

  int exit() const { return failed_ > 0 ? 4 : wrong_ > 0 ? 1 : 0; }

private:
  void take(Duel duel) {
    if (duel.skipped.empty()) return duels_.push_back(std::move(duel));
    skipped_.push_back({{"cell", duel.cell},
                        {"kernel", duel.kernel},
                        {"skipped", duel.skipped},
                        {"head_refuses", duel.head_refuses}});
  }

  nlohmann::json row(const Duel &duel, const Compared &c) {
    const char *speed = name_of(c.speed);
    std::string remark = c.speed == Speed::kSame ? "" : speed;
    if (duel.wrong > 0)
      remark +=
          fmt::format("{}outputs wrong after {} replays", remark.empty() ? "" : ", ", duel.wrong);
    else if (!duel.same_bits)
      remark += remark.empty() ? "other bits" : ", other bits";
    for (const std::string &line : duel.findings)
      fmt::print(text_, "FINDING {} {}: {}\n", duel.cell, duel.kernel, line);
    wrong_ += duel.wrong > 0 || duel.base_wrong > 0 || !duel.findings.empty();
    fmt::print(text_, "{:<28} {:<22} {:>10.2f} {:>10.2f} {:>7.3f} {:>8.3f}  {}\n", duel.cell,
               duel.kernel, c.base_us, c.head_us, c.ratio, c.control, remark);
    return {{"cell", duel.cell},
            {"kernel", duel.kernel},
            {"base_us", c.base_us},
            {"head_us", c.head_us},
            {"ratio", c.ratio},
            {"control", c.control},
            {"p", c.p},
            {"speed", speed},
            {"wrong", duel.wrong},
            {"base_wrong", duel.base_wrong},
            {"same_bits", duel.same_bits}};
  }

  static size_t count(const char *speed, const nlohmann::json &rows) {
    size_t out = 0;
    for (const nlohmann::json &row : rows)
      out += row.value("speed", "") == speed;
    return out;
  }

  const std::vector<KernelPair> &pairs_;
  const Options &options_;
  std::FILE *text_;
  std::vector<Duel> duels_;
  nlohmann::json skipped_ = nlohmann::json::array();
  int failed_ = 0, wrong_ = 0;
};

} // namespace

int versus_and_report(const CellSet &cells, const std::vector<KernelPair> &pairs,
                      const Options &options, std::FILE *text, nlohmann::json &document) {
  DeviceInfo device;
  std::string error;
  if (!device_info(device, error)) {
    fmt::print(stderr, "bench: no CUDA device: {}\n", error);
    return 3;
  }
  fmt::print(
      text,
      "{}, {} SMs; base and head in turns, and base again as control; cold L2, CUDA graphs; a "
      "change is more than {:.0f} %\n",
      device.name, device.multiprocessors, 100 * kSpeedFloor);
  Versus versus(pairs, options, text);
  versus.run(cells.decode);
  versus.run(cells.cascade);
  versus.run(cells.merge);
  nlohmann::json rows = versus.finish();
  document = {{"device", device.name},
              {"driver", device.driver},
              {"date", today()},
              {"duels", std::move(rows)}};
  return versus.exit();
}

} // namespace assay::bench
