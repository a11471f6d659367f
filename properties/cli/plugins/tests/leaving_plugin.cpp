// SPDX-License-Identifier: Apache-2.0
// A plugin whose kernels leave the process with a pass on their lips, or which leaves as soon as it
// is asked for them.
#include <cstdlib>
#include <vector>

#include "properties/tests/reference_kernels.h"

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  static std::vector<assay_kernel> kernels;
  static assay_plugin plugin;
  if (getenv("ASSAY_TEST_LEAVES_EARLY") != nullptr) exit(0);
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  plugin = assay::reference::plugin();
  kernels.assign(plugin.kernels, plugin.kernels + plugin.num_kernels);
  for (assay_kernel &kernel : kernels)
    kernel.run = [](const void *) -> assay_status { exit(0); };
  plugin.kernels = kernels.data();
  return &plugin;
}
