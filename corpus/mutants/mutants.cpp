// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "kernels/api/launch_table.cuh"

#include "corpus/mutants/mutants.h"
#include "kernels/api/own_kernels.h"

namespace assay::mutants {
namespace {

template <class Kernel, auto kFind>
assay_status run(const void *params) {
  return run_call<Kernel>(n_mutants::launch_table().*kFind,
                          static_cast<const typename Kernel::Params *>(params));
}

bool same(assay_dtype dtype, assay_dtype kv_dtype, int head_dim, const auto &built) {
  if constexpr (requires { built.kv_dtype; })
    if (built.kv_dtype != kv_dtype) return false;
  return built.dtype == dtype && built.head_dim == head_dim;
}

} // namespace

const assay_plugin *plugin() {
  static const auto kKernels = [] {
    const auto own = own_kernels(ASSAY_TARGET_SIMT);
    std::vector<assay_kernel> kernels(own.begin(), own.end());
    const auto ranks = rank_kernels();
    kernels.insert(kernels.end(), ranks.begin(), ranks.end());
    size_t row = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) kernels[row++].run = &run<Kernel, &LaunchTable::name>;
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#include "kernels/api/kernels.def"
    row = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) ++row;
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, Kernel)
#define ASSAY_PLANNED_KERNEL(name, Kernel)                                                         \
  kernels[row++].plan = &run<Kernel::Planner, &LaunchTable::name##_plan>;
#include "kernels/api/kernels.def"
    return kernels;
  }();
  static const assay_plugin kPlugin = {sizeof(assay_plugin),
                                       ASSAY_ABI_MAJOR,
                                       ASSAY_ABI_MINOR,
                                       "mutants",
                                       static_cast<int32_t>(kKernels.size()),
                                       kKernels.data()};
  return &kPlugin;
}

bool has(const assay_kernel &kernel, assay_dtype dtype, assay_dtype kv_dtype, int head_dim) {
  const auto among = [&](const auto &list) {
    return std::any_of(std::begin(list), std::end(list),
                       [&](const auto &built) { return same(dtype, kv_dtype, head_dim, built); });
  };
  if (kernel.family == ASSAY_FAMILY_CASCADE) return among(n_mutants::kCascade);
  if (kernel.family != ASSAY_FAMILY_PAGED) return true; // merges are one code for all
  const bool tree = std::string_view(kernel.name) == "tree_attention";
  return tree ? among(n_mutants::kTree) : among(n_mutants::kDecode);
}

} // namespace assay::mutants
