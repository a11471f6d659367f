// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/commands/other_schedules.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/findings/big_case.h"

namespace assay {
namespace {

/// The case on the `number`-th of its seeded schedules, from 1. What else follows the seed, by its
/// lowest three bits (properties/sut/sut.h), stays as it is.
Case on_seeded(const Case &c, int number) {
  constexpr uint32_t kOthersThatFollowTheSeed = 8;
  Case out = c;
  out.problem.schedule = {BlockOrder::kSeeded, CopyTiming::kSeeded,
                          c.problem.schedule.seed +
                              kOthersThatFollowTheSeed * static_cast<uint32_t>(number)};
  return out;
}

void try_seeds(const Property &property, const Case &c, Sut &sut, int most, OtherSchedules &out) {
  while (out.seeded < most && !out.failed()) {
    const Case drawn = on_seeded(c, ++out.seeded);
    out.seed = drawn.problem.schedule.seed;
    sut.start_anew();
    out.failure = checked_case(property, drawn, sut, nullptr);
    if (out.failure.failed()) out.failed_number = out.seeded;
  }
}

void try_orders(const Property &property, const Case &c, Sut &sut, int most, OtherSchedules &out) {
  int number = 0;
  out.orders = sut.explore(static_cast<uint64_t>(most), [&] {
    ++number;
    out.failure = checked_case(property, c, sut, nullptr);
    return !out.failure.failed();
  });
  // What ends a run that is too long is no mistake of the kernel.
  if (out.orders && out.orders->stopped && !out.orders->too_long) out.failed_number = number;
}

std::string orders_in_words(const simt::Explored &orders) {
  if (orders.complete && orders.runs == 1) return "the only order of its operations";
  if (orders.complete) return fmt::format("all {} orders of its operations", orders.runs);
  if (orders.too_long) return "its operations are too many for an exploration of their order";
  return fmt::format("{} orders of its operations; at least {} more did not run", orders.runs,
                     orders.left);
}

} // namespace

OtherSchedules on_other_schedules(const Property &property, const Case &c, Sut &sut, int most) {
  OtherSchedules out;
  try_seeds(property, c, sut, most, out);
  if (!out.failed()) try_orders(property, c, sut, most, out);
  return out;
}

std::string in_words(const OtherSchedules &tried) {
  if (tried.failed() && !tried.orders)
    return fmt::format("fails on seeded schedule {}: schedule.order seeded, schedule.copies "
                       "seeded, schedule.seed {}",
                       tried.failed_number, tried.seed);
  const std::string seeded =
      fmt::format("{} seeded schedule{}", tried.seeded, tried.seeded == 1 ? "" : "s");
  if (tried.failed())
    return fmt::format("passes on {}, fails on order {} of its operations", seeded,
                       tried.failed_number);
  return fmt::format("passes on {}; {}", seeded,
                     tried.orders ? orders_in_words(*tried.orders)
                                  : "orders are not explored in a process of its own");
}

nlohmann::json to_json(const OtherSchedules &tried) {
  nlohmann::json out = {{"seeded", tried.seeded}, {"failed", tried.failed_number}};
  if (tried.failed() && !tried.orders) out["seed"] = tried.seed;
  if (tried.orders)
    out["orders"] = {{"runs", tried.orders->runs},
                     {"complete", tried.orders->complete},
                     {"left", tried.orders->left}};
  return out;
}

} // namespace assay
