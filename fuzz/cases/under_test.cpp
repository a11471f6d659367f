// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cases/under_test.h"

namespace assay::fuzz {

const assay_plugin &kernels_under_test() { return *assay_plugin_entry(ASSAY_ABI_MAJOR); }

} // namespace assay::fuzz
