// SPDX-License-Identifier: Apache-2.0
// Questions whose answer leaves something behind in the process that asks.
#pragma once

#include <chrono>
#include <optional>

namespace assay {

/// What `ask` returns in a process of its own; nothing where that ends or takes longer.
std::optional<int> asked_apart(int (*ask)(), std::chrono::milliseconds patience);

/// What `ask` returns in a process of its own; where that is 0, what it returns in this one; 0
/// where that process ends or hangs.
int asked_apart_or_here(int (*ask)(), std::chrono::milliseconds patience);

} // namespace assay
