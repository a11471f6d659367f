// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/feedback.h"

#include <algorithm>
#include <array>
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

// Levels taken together. Every feature is one more input to mutate, which is worth it where two
// numbers must come near each other; elsewhere a few levels are enough (measured/fuzz.md).
constexpr std::array<uint8_t, kSignals> kTogether = {16, 16, 2, 4, 8, 16, 3, 16,
                                                     1,  3,  3, 3, 1, 3,  2};

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
  const auto index = static_cast<size_t>(signal);
  const auto step = static_cast<size_t>(std::clamp(level, 0.0, double{kLevels - 1}));
  counters[(form_now * kSignals + index) * kLevels + step / kTogether[index]] = 1;
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
