// SPDX-License-Identifier: Apache-2.0
// For unit tests over mutated calls: the number in ASSAY_MUTANT is active on the main thread.
#include "corpus/mutants/active.h"

#include <cstdlib>

namespace assay::mutants {
namespace {

const int kActivated = [] {
  const char *number = std::getenv("ASSAY_MUTANT");
  return active_id = number != nullptr ? std::atoi(number) : 0;
}();

} // namespace
} // namespace assay::mutants
