// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/feedback.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace assay::fuzz {
namespace {

constexpr size_t kForms = 11, kSignals = static_cast<size_t>(Signal::kCount), kLevels = 64;

// libFuzzer clears it before an input, and takes every byte that is not 0 afterwards for a feature.
[[gnu::section("__libfuzzer_extra_counters"),
  gnu::used]] uint8_t counters[kForms * kSignals * kLevels];

size_t form_now = 0;

bool is_on() {
  static const bool on = [] {
    const char *value = std::getenv("ASSAY_FUZZ_FEEDBACK");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return on;
}

} // namespace

void begin_feedback(int form) { form_now = static_cast<size_t>(form) % kForms; }

void note(Signal signal, double level) {
  if (!is_on() || level != level) return;
  const auto step = static_cast<size_t>(std::clamp(level, 0.0, double{kLevels - 1}));
  counters[(form_now * kSignals + static_cast<size_t>(signal)) * kLevels + step] = 1;
}

double exponent_level(double x) {
  if (x == 0) return 0;
  if (!std::isfinite(x)) return 63;
  return 1 + (std::clamp(static_cast<double>(std::ilogb(x)), -150.0, 128.0) + 150) / 4.6;
}

double error_level(double error, double bound) {
  if (!(error > 0) || !(bound > 0)) return 0;
  return 63 + 2 * std::log2(error / bound);
}

} // namespace assay::fuzz
