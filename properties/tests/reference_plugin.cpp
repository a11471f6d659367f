// SPDX-License-Identifier: Apache-2.0
// The reference kernels as a third party would ship theirs: a shared library with one entry.
#include "properties/tests/reference_kernels.h"

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &assay::reference::plugin() : nullptr;
}
