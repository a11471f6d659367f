// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/abi/plugin.h"

namespace assay {

/// The production kernel of this name on the CPU executor.
inline const assay_kernel &own_kernel(const std::string &name) {
  const assay_plugin *plugin = assay_plugin_entry(ASSAY_ABI_MAJOR);
  for (int i = 0; i < plugin->num_kernels; ++i)
    if (plugin->kernels[i].name == name && plugin->kernels[i].target == ASSAY_TARGET_SIMT)
      return plugin->kernels[i];
  throw std::out_of_range(name);
}

} // namespace assay
