// SPDX-License-Identifier: Apache-2.0
// For fuzz targets and unit tests over mutants: the one that ASSAY_MUTANT names is active on the
// main thread.
#include "corpus/mutants/active.h"

#include <cstdio>
#include <cstdlib>

namespace assay::mutants {
namespace {

const int kActivated = [] {
  const char *name = std::getenv("ASSAY_MUTANT");
  if (name == nullptr) return 0;
  const Mutant *mutant = find(name);
  if (mutant == nullptr) {
    std::fprintf(stderr, "ASSAY_MUTANT is '%s', no mutant of this program\n", name);
    std::exit(2);
  }
  return active_id = mutant->id;
}();

} // namespace
} // namespace assay::mutants
