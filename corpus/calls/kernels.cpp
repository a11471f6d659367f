// SPDX-License-Identifier: Apache-2.0
#include "corpus/calls/kernels.h"

#include <vector>

#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
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

const assay_kernel *find_kernel(std::string_view name) {
  return assay::find_kernel(plugin(), name);
}

} // namespace assay::wrong_calls
