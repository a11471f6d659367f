// SPDX-License-Identifier: Apache-2.0
#include "corpus/calls/kernels.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

const assay_kernel *find_in(const assay_plugin &plugin, std::string_view name) {
  for (int i = 0; i < plugin.num_kernels; ++i)
    if (plugin.kernels[i].name == name && plugin.kernels[i].target == ASSAY_TARGET_SIMT)
      return &plugin.kernels[i];
  return nullptr;
}

} // namespace

const assay_plugin &plugin() {
  static const std::vector<assay_kernel> kernels = [] {
    std::vector<assay_kernel> out;
    for (const auto &some : {wrong_layouts(), wrong_memories(), wrong_sizes(), wrong_orders()})
      out.insert(out.end(), some.begin(), some.end());
    return out;
  }();
  static const assay_plugin table = {sizeof(assay_plugin),
                                     ASSAY_ABI_MAJOR,
                                     ASSAY_ABI_MINOR,
                                     "wrong_calls",
                                     static_cast<int32_t>(kernels.size()),
                                     kernels.data()};
  return table;
}

const assay_kernel *find_kernel(std::string_view name) { return find_in(plugin(), name); }

const assay_kernel &own_kernel(std::string_view name) {
  const assay_kernel *kernel = find_in(*assay_plugin_entry(ASSAY_ABI_MAJOR), name);
  if (kernel == nullptr) throw std::out_of_range(std::string(name));
  return *kernel;
}

} // namespace assay::wrong_calls
