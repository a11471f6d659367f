// SPDX-License-Identifier: Apache-2.0
// The kernels of a planted target: those of the mutants.
#include "corpus/mutants/mutants.h"
#include "fuzz/cases/under_test.h"

namespace assay::fuzz {

const assay_plugin &kernels_under_test() { return *mutants::plugin(); }

} // namespace assay::fuzz
