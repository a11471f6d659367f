// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/regressions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::gate {
namespace {

constexpr double kFloor = 1.25, kDiscoveries = 0.05;

/// The tightest tier that judged O.
double error_of(const json &worst, const std::string &output) {
  if (output == "lse") return worst.at("ratio_lse").get<double>();
  for (const char *tier : {"ratio_t2", "ratio_t1", "ratio_t0"})
    if (const double ratio = worst.at(tier).get<double>(); ratio > 0) return ratio;
  return 0;
}

void show(ErrorShift &shift, double base, double head) {
  shift.base = std::max(shift.base, base);
  shift.head = std::max(shift.head, head);
}

void compare(ErrorShift &shift, double base, double head, std::vector<double> &quotients) {
  if (!(base > 0) || !(head > 0) || base == head) return;
  ++(head > base ? shift.more : shift.less);
  quotients.push_back(head / base);
}

/// Runs over other cases, or with findings (the first one ends a run), cannot be compared.
bool comparable(const json &base, const json &head) {
  return base.at("cases") == head.at("cases") && base.at("findings") == 0 &&
         head.at("findings") == 0;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 1;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Benjamini and Hochberg.
void mark_grown(std::vector<ErrorShift> &shifts) {
  std::vector<ErrorShift *> by_p;
  for (ErrorShift &shift : shifts)
    by_p.push_back(&shift);
  std::sort(by_p.begin(), by_p.end(),
            [](const ErrorShift *a, const ErrorShift *b) { return a->p < b->p; });
  const auto n = static_cast<double>(by_p.size());
  size_t found = 0;
  for (size_t i = 0; i < by_p.size(); ++i)
    if (by_p[i]->p <= kDiscoveries * static_cast<double>(i + 1) / n) found = i + 1;
  for (size_t i = 0; i < found; ++i)
    by_p[i]->grew = by_p[i]->median > kFloor;
}

struct Row {
  int threads = 0, registers = 0, stack = 0, shared = 0;
};

std::map<std::string, Row> figures_of(const std::string &csv) {
  std::map<std::string, Row> out;
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');)
      cells.push_back(cell);
    if (cells.size() != 7) continue;
    out[cells[1] + " <" + cells[2] + "> " + cells[0]] = {
        std::atoi(cells[3].c_str()), std::atoi(cells[4].c_str()), std::atoi(cells[5].c_str()),
        std::atoi(cells[6].c_str())};
  }
  return out;
}

/// Blocks that fit on an SM; registers are given out by eights.
int blocks_of(const Row &row) {
  constexpr int kRegisters = 65536, kShared = 227 * 1024, kMax = 32;
  const int registers = (row.registers + 7) / 8 * 8 * row.threads;
  int out = kMax;
  if (registers > 0) out = std::min(out, kRegisters / registers);
  if (row.shared > 0) out = std::min(out, kShared / row.shared);
  return out;
}

} // namespace

double sign_test(int more, int less) {
  const int n = more + less;
  double out = 0;
  for (int k = more; k <= n; ++k)
    out += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                    n * std::log(2.0));
  return std::min(out, 1.0);
}

std::vector<ErrorShift> error_shifts(const json &base, const json &head) {
  std::map<std::pair<std::string, std::string>, const json *> before;
  for (const json &run : base.at("runs"))
    before[{run.at("kernel"), run.at("property")}] = &run;
  std::vector<ErrorShift> out;
  for (const json &kernel : head.at("kernels"))
    for (const char *output : {"o", "lse"}) {
      ErrorShift shift;
      shift.kernel = kernel.at("name");
      shift.output = output;
      std::vector<double> quotients;
      for (const json &run : head.at("runs")) {
        const auto at = before.find({run.at("kernel"), run.at("property")});
        if (run.at("kernel") != shift.kernel || at == before.end()) continue;
        const json &other = *at->second;
        if (!run.contains("worst") || !other.contains("worst")) continue; // an older assay
        const double before_ratio = error_of(other.at("worst"), output);
        const double ratio = error_of(run.at("worst"), output);
        show(shift, before_ratio, ratio);
        if (comparable(other, run)) compare(shift, before_ratio, ratio, quotients);
      }
      if (!(shift.base > 0) && !(shift.head > 0)) continue;
      shift.median = median_of(quotients);
      shift.p = sign_test(shift.more, shift.less);
      out.push_back(shift);
    }
  mark_grown(out);
  return out;
}

std::vector<CounterShift> counter_shifts(const json &base, const json &head) {
  std::map<std::pair<std::string, std::string>, const json *> before;
  for (const json &run : base.at("runs"))
    before[{run.at("kernel"), run.at("property")}] = &run;
  std::map<std::pair<std::string, std::string>, CounterShift> sums;
  for (const json &run : head.at("runs")) {
    const auto at = before.find({run.at("kernel"), run.at("property")});
    if (at == before.end() || !comparable(*at->second, run)) continue;
    const json &old = at->second->value("counters", json::object()),
               &counters = run.value("counters", json::object());
    if (old.empty() || counters.empty())
      continue; // an older assay, or a target that counts nothing
    for (const auto &[name, count] : counters.items()) {
      CounterShift &sum = sums[{run.at("kernel"), name}];
      sum.kernel = run.at("kernel");
      sum.counter = name;
      sum.base += old.value(name, uint64_t{0});
      sum.head += count.get<uint64_t>();
    }
  }
  std::vector<CounterShift> out;
  for (const auto &[key, shift] : sums)
    out.push_back(shift);
  return out;
}

Figures judge_counters(const std::vector<CounterShift> &shifts) {
  constexpr double kGrowth = 1.05;
  static const std::set<std::string> kDear = {"global_load_bytes", "global_store_bytes",
                                              "block_barriers", "launches"};
  std::map<std::pair<std::string, std::string>, CounterShift> sums;
  for (const CounterShift &s : shifts) {
    CounterShift &sum = sums[{s.kernel, s.counter}];
    sum.kernel = s.kernel;
    sum.counter = s.counter;
    sum.base += s.base;
    sum.head += s.head;
  }
  Figures out;
  std::map<std::string, std::string> lines;
  for (const auto &[key, s] : sums) {
    if (s.base == s.head) continue;
    const auto base = static_cast<double>(s.base), head = static_cast<double>(s.head);
    const std::string change =
        s.base == 0 ? fmt::format("{} 0 -> {}", s.counter, s.head)
                    : fmt::format("{} {:+.2f} %", s.counter, 100 * (head / base - 1));
    std::string &line = lines[s.kernel];
    line += (line.empty() ? s.kernel + " on the executor: " : ", ") + change;
    if (kDear.count(s.counter) == 0 || head <= base * kGrowth) continue;
    out.red.push_back(
        red_line("counters-grew", s.kernel,
                 fmt::format("{} ({} -> {}) over the same draws", change, s.base, s.head)));
  }
  for (auto &[kernel, line] : lines)
    out.notes.push_back(std::move(line));
  return out;
}

Figures compare_size(const std::string &base, const std::string &head) {
  constexpr double kGrowth = 1.25, kBytes = 1 << 20;
  std::error_code ec;
  const auto before = static_cast<double>(std::filesystem::file_size(base, ec));
  if (ec) return {};
  const auto after = static_cast<double>(std::filesystem::file_size(head, ec));
  if (ec) return {};
  const std::string text = fmt::format("size {:.0f} -> {:.0f} bytes", before, after);
  if (after > before * kGrowth && after > before + kBytes)
    return {{red_line("figures", "", text)}, {}};
  return before == after ? Figures{} : Figures{{}, {text}};
}

Figures compare_figures(const std::string &base_csv, const std::string &head_csv) {
  Figures out;
  const auto before = figures_of(base_csv), after = figures_of(head_csv);
  int changed = 0;
  for (const auto &[name, row] : after) {
    const auto at = before.find(name);
    if (at == before.end()) continue;
    const Row &old = at->second;
    changed += row.registers != old.registers || row.shared != old.shared || row.stack != old.stack;
    if (row.stack > old.stack)
      out.red.push_back(
          red_line("figures", "", fmt::format("{}: stack {} -> {}", name, old.stack, row.stack)));
    else if (blocks_of(row) < blocks_of(old))
      out.red.push_back(
          red_line("figures", "",
                   fmt::format("{}: blocks on an SM {} -> {} (registers {} -> {}, shared {} -> {})",
                               name, blocks_of(old), blocks_of(row), old.registers, row.registers,
                               old.shared, row.shared)));
  }
  if (changed > 0)
    out.notes.push_back(fmt::format("registers or shared memory of {} of {} kernels changed",
                                    changed, after.size()));
  return out;
}

} // namespace assay::gate
