// SPDX-License-Identifier: Apache-2.0
// Part of a planted target: ASSAY_PLANT names the mistake that it runs with.
#include <cstdio>
#include <cstdlib>

#include "fuzz/paths/plant.h"

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  const char *name = std::getenv("ASSAY_PLANT");
  const int id = name == nullptr ? 0 : assay::fuzz::planted_id(name);
  if (id == 0) {
    std::fprintf(stderr, "ASSAY_PLANT is '%s', not a mistake of corpus/mutants or fuzz/planted\n",
                 name == nullptr ? "" : name);
    std::exit(2);
  }
  assay::mutants::active_id = id;
  return 0;
}
