// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include <iterator>

#include "kernels/api/launch_table.cuh"

#include "corpus/mutants/mutants.h"
#include "kernels/api/own_kernels.h"

namespace assay::mutants {
namespace {

constexpr Mutant kMutants[] = {
#include "mutant_table.inc"
};

// The null keeps the array from being empty.
constexpr const char *kOmitted[] = {
#include "mutant_omitted.inc"
    nullptr};

template <class Kernel, auto kFind>
assay_status run(const void *params) {
  return run_call<Kernel>(n_mutants::launch_table().*kFind,
                          static_cast<const typename Kernel::Params *>(params));
}

} // namespace

std::span<const Mutant> all() { return kMutants; }
std::span<const char *const> omitted() { return {kOmitted, std::size(kOmitted) - 1}; }

const assay_plugin *plugin() {
  static const auto kKernels = [] {
    auto kernels = own_kernels(ASSAY_TARGET_SIMT);
    size_t row = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) kernels[row++].run = &run<Kernel, &LaunchTable::name>;
#include "kernels/api/kernels.def"
    row = 0;
#define ASSAY_KERNEL_ROW(name, Kernel) ++row;
#define ASSAY_PLANNED_KERNEL(name, Kernel)                                                         \
  kernels[row++].plan = &run<Kernel::Planner, &LaunchTable::name##_plan>;
#include "kernels/api/kernels.def"
    return kernels;
  }();
  static const assay_plugin kPlugin = {sizeof(assay_plugin), ASSAY_ABI_MAJOR,
                                       ASSAY_ABI_MINOR,      "mutants",
                                       kKernels.size(),      kKernels.data()};
  return &kPlugin;
}

} // namespace assay::mutants
