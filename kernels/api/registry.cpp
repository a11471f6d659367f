// SPDX-License-Identifier: Apache-2.0
// Our kernels in the table third parties fill: the harness has no other way to reach them.
#include "kernels/api/launch_table.h"
#include "kernels/api/own_kernels.h"
#include "kernels/host/arithmetic.h"
#include "kernels/host/device_info.h"
#include "kernels/host/status.h"

#include <vector>

namespace assay {
namespace {

template <auto kFunction, class Params>
assay_status call(const void *params) {
  return kFunction(static_cast<const Params *>(params));
}
template <auto kFunction, class Params>
assay_status size(const void *params, uint64_t *bytes) {
  return kFunction(static_cast<const Params *>(params), bytes);
}

template <class Kernel>
assay_kernel row(const char *name, assay_target target, assay_status (*supports)(const void *),
                 assay_status (*run)(const void *)) {
  assay_kernel k{};
  k.struct_size = sizeof k;
  k.name = name;
  k.family = Kernel::kFamily;
  k.target = target;
  k.determinism = ASSAY_DETERMINISM_RUN_TO_RUN;
  k.batch_invariance = Kernel::kBatchInvariance;
  k.nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES;
  k.arithmetic = Kernel::kArithmetic;
  k.supports = supports;
  k.run = run;
  k.last_error = &assay_last_error;
  if constexpr (requires { &Kernel::key_order; }) k.key_order = &Kernel::key_order;
  k.capabilities = ASSAY_CHECKS_ARGUMENTS;
  if (Kernel::kFamily == ASSAY_FAMILY_PAGED) k.capabilities |= ASSAY_RAGGED_QUERIES | ASSAY_SHARDS;
  if (Kernel::kFamily == ASSAY_FAMILY_PAGED || Kernel::kFamily == ASSAY_FAMILY_CASCADE)
    k.capabilities |= ASSAY_PAGE_LISTS;
  return k;
}

} // namespace

std::array<assay_kernel, kOwnKernels> own_kernels(assay_target target, TensorCore core) {
  std::array<assay_kernel, kOwnKernels> kernels = {{
#define ASSAY_KERNEL_ROW(name, Kernel)                                                             \
  row<Kernel>(#name, target, &call<&assay_##name##_supports, Kernel::Params>,                      \
              &call<&assay_##name, Kernel::Params>),
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, Kernel)
#include "kernels/api/kernels.def"
  }};
  size_t i = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) ++i;
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, Kernel)
#define ASSAY_WORKSPACE_KERNEL(name, Kernel)                                                       \
  kernels[i++].workspace_size = &size<&assay_##name##_workspace_size, Kernel::Params>;
#include "kernels/api/kernels.def"
  i = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) ++i;
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, Kernel)
#define ASSAY_PLANNED_KERNEL(name, Kernel)                                                         \
  kernels[i].plan_size = &size<&assay_##name##_plan_size, Kernel::Params>;                         \
  kernels[i++].plan = &call<&assay_##name##_plan, Kernel::Params>;
#include "kernels/api/kernels.def"
  for (assay_kernel &kernel : kernels)
    kernel.arithmetic = on_tensor_core(kernel.arithmetic, core);
  return kernels;
}

#ifdef ASSAY_WITH_SIMT
namespace {

template <class Kernel, auto kFind>
assay_status rank_supports(const void *params) {
  return supports_call<Kernel>(n_simt::launch_table().*kFind,
                               static_cast<const typename Kernel::Params *>(params));
}
template <class Kernel, auto kFind>
assay_status rank_run(const void *params) {
  return run_call<Kernel>(n_simt::launch_table().*kFind,
                          static_cast<const typename Kernel::Params *>(params));
}

} // namespace

std::vector<assay_kernel> rank_kernels() {
  std::vector<assay_kernel> kernels;
#define ASSAY_KERNEL_ROW(name, Kernel)
#define ASSAY_ENTRY_KERNEL(name, Kernel)
#define ASSAY_RANKS_KERNEL(name, ...)                                                              \
  kernels.push_back(row<__VA_ARGS__>(#name, ASSAY_TARGET_SIMT,                                     \
                                     &rank_supports<__VA_ARGS__, &LaunchTable::name>,              \
                                     &rank_run<__VA_ARGS__, &LaunchTable::name>));                 \
  kernels.back().capabilities &= ~(ASSAY_SHARDS | ASSAY_PAGE_LISTS);
#include "kernels/api/kernels.def"
  return kernels;
}
#else
std::vector<assay_kernel> rank_kernels() { return {}; }
#endif

namespace {

void add(std::vector<assay_kernel> &all, assay_target target, TensorCore core) {
  if (!built_with(target)) return;
  const auto own = own_kernels(target, core);
  all.insert(all.end(), own.begin(), own.end());
}

/// Targets the library was built with, simt first.
const assay_plugin &own_plugin() {
  static const auto kKernels = [] {
    std::vector<assay_kernel> all;
    add(all, ASSAY_TARGET_SIMT, kHopperCore);
    add(all, ASSAY_TARGET_CUDA, tensor_core(cuda_capability()));
    const auto ranks = rank_kernels();
    all.insert(all.end(), ranks.begin(), ranks.end());
    return all;
  }();
  static const assay_plugin kPlugin = {sizeof(assay_plugin),
                                       ASSAY_ABI_MAJOR,
                                       ASSAY_ABI_MINOR,
                                       "assay",
                                       static_cast<int32_t>(kKernels.size()),
                                       kKernels.data()};
  return kPlugin;
}

} // namespace
} // namespace assay

extern "C" const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &assay::own_plugin() : nullptr;
}
