// SPDX-License-Identifier: Apache-2.0
// The wrong kernels as a third party would ship theirs: `assay check --plugin` takes them one by
// one.
#include "corpus/bugs/kernels.h"

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &assay::bugs::plugin() : nullptr;
}
