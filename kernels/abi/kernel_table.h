// SPDX-License-Identifier: Apache-2.0
// The kernels of a table, for C++.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/abi/plugin.h"

namespace assay {

inline std::span<const assay_kernel> kernels_in(const assay_plugin &plugin) {
  return {plugin.kernels, static_cast<size_t>(plugin.num_kernels)};
}

/// Null where the table has none of this name on the target.
inline const assay_kernel *find_kernel(const assay_plugin &plugin, std::string_view name,
                                       assay_target target = ASSAY_TARGET_SIMT) {
  for (const assay_kernel &kernel : kernels_in(plugin))
    if (kernel.name == name && kernel.target == target) return &kernel;
  return nullptr;
}

/// Those that this program is linked with.
inline std::span<const assay_kernel> linked_kernels() {
  return kernels_in(*assay_plugin_entry(ASSAY_ABI_MAJOR));
}

/// One of them. Throws where there is none.
inline const assay_kernel &own_kernel(std::string_view name,
                                      assay_target target = ASSAY_TARGET_SIMT) {
  const assay_kernel *kernel = find_kernel(*assay_plugin_entry(ASSAY_ABI_MAJOR), name, target);
  if (kernel == nullptr) throw std::out_of_range("no kernel " + std::string(name));
  return *kernel;
}

} // namespace assay
