// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/compared.h"

#include <utility>

namespace assay {
namespace {

// A property runs on one thread, and what it compares lies far below it.
thread_local uint64_t compared = 0;

} // namespace

void count_compared(uint64_t elements) { compared += elements; }
uint64_t take_compared() { return std::exchange(compared, 0); }

} // namespace assay
