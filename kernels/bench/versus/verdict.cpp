// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/versus/verdict.h"

#include <algorithm>
#include <cmath>

namespace assay::bench {
namespace {

constexpr double kDiscoveries = 0.05;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Compared compared(const Arms &arms) {
  std::vector<double> base = arms.base;
  base.insert(base.end(), arms.again.begin(), arms.again.end());
  Compared out;
  out.base_us = median_of(base);
  out.head_us = median_of(arms.head);
  if (!(out.base_us > 0) || arms.again.empty()) return out;
  out.ratio = out.head_us / out.base_us;
  out.control = median_of(arms.again) / median_of(arms.base);
  out.p = rank_test(arms.head, base);
  return out;
}

/// The largest p that is still a discovery among these; -1 where none is.
double last_discovery(const std::vector<Compared> &cells) {
  std::vector<double> p;
  for (const Compared &c : cells)
    p.push_back(c.p);
  std::sort(p.begin(), p.end());
  const auto n = static_cast<double>(p.size());
  for (size_t i = p.size(); i > 0; --i)
    if (p[i - 1] <= kDiscoveries * static_cast<double>(i) / n) return p[i - 1];
  return -1;
}

Speed speed_of(const Compared &c, bool discovered) {
  const double change = std::fabs(c.ratio - 1), drift = std::fabs(c.control - 1);
  if (drift > kSpeedFloor / 2) return Speed::kInconclusive;
  if (!discovered || change <= kSpeedFloor) return Speed::kSame;
  if (drift > change / 2) return Speed::kInconclusive;
  return c.ratio > 1 ? Speed::kSlower : Speed::kFaster;
}

} // namespace

double rank_test(const std::vector<double> &a, const std::vector<double> &b) {
  struct Value {
    double x;
    bool of_a;
  };
  std::vector<Value> all;
  for (const double x : a)
    all.push_back({x, true});
  for (const double x : b)
    all.push_back({x, false});
  std::sort(all.begin(), all.end(), [](const Value &x, const Value &y) { return x.x < y.x; });
  double rank_sum = 0, ties = 0; // sum of the ranks of a; sum of t^3 - t
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].x == all[i].x)
      ++end;
    const double rank = static_cast<double>(i + end + 1) / 2, t = static_cast<double>(end - i);
    ties += t * t * t - t;
    for (; i < end; ++i)
      if (all[i].of_a) rank_sum += rank;
  }
  const auto m = static_cast<double>(a.size()), n = static_cast<double>(b.size()), all_n = m + n;
  if (m == 0 || n == 0) return 1;
  const double u = rank_sum - m * (m + 1) / 2, mean = m * n / 2;
  const double variance = m * n / 12 * (all_n + 1 - ties / (all_n * (all_n - 1)));
  if (!(variance > 0)) return 1;
  const double z = std::max(0.0, std::fabs(u - mean) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

std::vector<Compared> compare_speeds(const std::vector<Arms> &cells) {
  std::vector<Compared> out;
  for (const Arms &arms : cells)
    out.push_back(compared(arms));
  const double last = last_discovery(out);
  for (Compared &c : out)
    c.speed = speed_of(c, c.p <= last);
  return out;
}

const char *name_of(Speed speed) {
  switch (speed) {
  case Speed::kSame:
    return "same";
  case Speed::kFaster:
    return "faster";
  case Speed::kSlower:
    return "slower";
  case Speed::kInconclusive:
    break;
  }
  return "inconclusive";
}

} // namespace assay::bench
