// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/logit_map.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {
namespace {

constexpr double kU53 = 0x1p-53;
constexpr double kTanhError = 0x1p-50; // of the C library's tanh, with room; certified by the tests
constexpr double kSmallestCap = 0x1p-100, kLargestCap = 0x1p100;

// How far cap * tanh(y / cap) moves when y moves by `change`: its slope falls with |y|.
double moved_by(double y, double cap, double change) {
  const double nearest = std::max(0.0, std::fabs(y) - change) / cap;
  const double root = 1.0 / std::cosh(std::min(nearest, 700.0));
  return change * std::min(1.0, root * root * kSlack);
}

Logit softcapped(const Logit &y, double cap, double tanh_error) {
  Logit capped;
  capped.x = cap * std::tanh(y.x / cap);
  const double size = std::fabs(capped.x);
  capped.radius = moved_by(y.x, cap, y.radius + std::fabs(y.x) * 4 * kU53) +
                  size * (kTanhError + 8 * kU53) + cap * 0x1p-300;
  capped.error = moved_by(y.x, cap, y.error + y.radius) + cap * tanh_error;
  capped.error += 4 * kU * (size + capped.error) + kFloor;
  return capped;
}

} // namespace

Logit map_logit(const RowFeatures &features, const ErrorModel &model, double scale_error,
                const Logit &scaled, double distance) {
  if (!features.mapped()) return scaled;
  Logit logit = scaled;
  // The kernel's own product: its scale's error, and one rounding.
  logit.error += (scale_error + kU) * (std::fabs(scaled.x) + scaled.error) + kFloor;
  if (features.softcap > 0.0f)
    logit = softcapped(logit, static_cast<double>(features.softcap) * kLog2E, model.tanh);
  if (features.alibi) {
    const double bias = static_cast<double>(features.slope) * distance * kLog2E;
    logit.x += bias;
    logit.radius += (std::fabs(bias) + std::fabs(logit.x)) * 4 * kU53;
    logit.error += 3 * kU * std::fabs(bias) + kFloor;
    logit.error += kU * (std::fabs(logit.x) + logit.error);
  }
  logit.radius *= kSlack;
  logit.error *= kSlack;
  return logit;
}

Logit sink_logit(const RowFeatures &features) {
  const double x = static_cast<double>(features.sink) * kLog2E;
  return {x, std::fabs(x) * 4 * kU53, kScaleError * std::fabs(x) * kSlack + kFloor};
}

std::string unclaimed_features(const RowFeatures &features) {
  const double cap = features.softcap;
  if (cap != 0.0 && !(cap > kSmallestCap && cap < kLargestCap))
    return "softcap outside the range in which its inverse is a normal fp32";
  if (!std::isfinite(features.slope)) return "ALiBi slope is not finite";
  if (features.sinks && !(features.sink < INFINITY)) return "sink is NaN or infinite";
  if (!std::isfinite(features.k_scale) || !std::isfinite(features.v_scale))
    return "KV scale is not finite";
  return "";
}

} // namespace assay::oracle
