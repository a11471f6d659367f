// SPDX-License-Identifier: Apache-2.0
// Whether one of two kernels is slower, from times of one run. Host code, no device.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::bench {

/// Microseconds a launch, one a round. In every round each arm ran once, in all orders equally
/// often; `again` is the kernel of `base` a second time: what moves between those two is no change.
struct Arms {
  std::vector<double> base, head, again;
};

enum class Speed : uint8_t { kSame, kFaster, kSlower, kInconclusive };

struct Compared {
  double base_us = 0, head_us = 0; ///< medians; of base over both its arms
  double ratio = 1;                ///< head_us / base_us
  double control = 1;              ///< median of `again` over that of `base`
  double p = 1;                    ///< two-sided, of head against both arms of base
  Speed speed = Speed::kSame;
};

/// What counts as a change, beside being no chance: two percent.
inline constexpr double kSpeedFloor = 0.02;

/// All cells of a run together: the rate of false discoveries over them is 5 % (Benjamini and
/// Hochberg). A change is a ratio beyond kSpeedFloor of which the control moved by less than half,
/// and by less than half of kSpeedFloor; where the control moves more, the cell is inconclusive.
std::vector<Compared> compare_speeds(const std::vector<Arms> &cells);

/// Two-sided p of Mann and Whitney's rank test, normal approximation with ties; 1 where one side is
/// empty or all values are equal. Good from about eight values a side.
double rank_test(const std::vector<double> &a, const std::vector<double> &b);

const char *name_of(Speed speed); ///< "same", "faster", "slower", "inconclusive"

} // namespace assay::bench
