// SPDX-License-Identifier: Apache-2.0
#include "corpus/mutants/prelude.h"

#include <iterator>

#include "kernels/launch/decode_launch.cuh"
#include "kernels/launch/kernel_table.cuh"

#include "corpus/mutants/mutants.h"
#include "kernels/launch/own_kernels.h"

namespace assay::n_mutants {
template struct DecodeLaunch<arch::bf16, arch::bf16, 64>;
template struct DecodeLaunch<arch::bf16, arch::e4m3, 64>;
template struct DecodeLaunch<arch::field16, arch::field16, 64>;
} // namespace assay::n_mutants

namespace assay::mutants {
namespace {

constexpr Mutant kMutants[] = {
#include "mutant_table.inc"
};

// The null keeps the array from being empty.
constexpr const char *kOmitted[] = {
#include "mutant_omitted.inc"
    nullptr};

template <auto kFunction, class Params>
assay_status call(const void *params) {
  return kFunction(n_mutants::kernel_table(), static_cast<const Params *>(params), true);
}

} // namespace

std::span<const Mutant> all() { return kMutants; }
std::span<const char *const> omitted() { return {kOmitted, std::size(kOmitted) - 1}; }

const assay_plugin *plugin() {
  static const auto kKernels = [] {
    auto kernels = own_kernels(ASSAY_TARGET_SIMT);
    for (assay_kernel &k : kernels)
      k.run = nullptr;
    kernels[0].run = &call<&run_v1, assay_paged_params>;
    kernels[1].run = &call<&run_v2, assay_paged_params>;
    kernels[2].run = &call<&run_cascade, assay_cascade_params>;
    kernels[3].run = &call<&run_merge_state, assay_merge_state_params>;
    kernels[4].run = &call<&run_merge_states, assay_merge_states_params>;
    return kernels;
  }();
  static const assay_plugin kPlugin = {sizeof(assay_plugin), ASSAY_ABI_MAJOR,
                                       ASSAY_ABI_MINOR,      "mutants",
                                       kKernels.size(),      kKernels.data()};
  return &kPlugin;
}

} // namespace assay::mutants
