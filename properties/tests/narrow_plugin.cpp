// SPDX-License-Identifier: Apache-2.0
// The narrow kernels as a third party would ship them: a shared library with one entry.
#include "properties/tests/narrow_kernels.h"

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &assay::narrow::plugin() : nullptr;
}
