// SPDX-License-Identifier: Apache-2.0
// Which cases a run draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/run/registry.h"

namespace assay {

struct RunnerOptions;

/// Draw number `index` of a property on a kernel: mostly small cases, some large.
Problem draw_case(const Property &property, const assay_kernel &kernel,
                  const RunnerOptions &options, uint64_t index);

/// How many draws of serving sizes (case/serving.h) a whole run of a property has beside the
/// others. They are numbered from kFirstServingDraw on.
int serving_draws(const Property &property, const assay_kernel &kernel);
inline constexpr uint64_t kFirstServingDraw = 1'000'000;

/// Important classes that no draw in the kernel's envelope shows, of those that may be asked.
std::vector<std::string> unseen_classes(const assay_kernel &kernel, const RunnerOptions &options);

} // namespace assay
