// SPDX-License-Identifier: Apache-2.0
// Part of a planted target over whole kernels: ASSAY_PLANT names the mutant that it runs with.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "corpus/mutants/mutants.h"
#include "fuzz/cases/under_test.h"

namespace assay::fuzz {

const assay_plugin &kernels_under_test() { return *mutants::plugin(); }

} // namespace assay::fuzz

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  const char *name = std::getenv("ASSAY_PLANT");
  for (const assay::mutants::Mutant &mutant : assay::mutants::all())
    if (name != nullptr && std::string_view(name) == mutant.name)
      assay::mutants::active_id = mutant.id;
  if (assay::mutants::active_id != 0) return 0;
  std::fprintf(stderr, "ASSAY_PLANT is '%s', not a mistake of corpus/mutants or fuzz/planted\n",
               name == nullptr ? "" : name);
  std::exit(2);
}
