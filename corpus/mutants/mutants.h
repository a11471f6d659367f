// SPDX-License-Identifier: Apache-2.0
// Known-wrong versions of our kernels, behind the same table as the right ones.
#pragma once

#include "corpus/mutants/active.h"
#include "kernels/abi/plugin.h"

namespace assay::mutants {

/// Our kernels with the mutants compiled in (simt target; in the dtypes and head_dims of
/// CMakeLists.txt). With no mutant active they are the unmodified kernels.
const assay_plugin *plugin();
/// Null when there is none of that name.
inline const assay_kernel *find_kernel(std::string_view name) {
  for (int i = 0; i < plugin()->num_kernels; ++i)
    if (name == plugin()->kernels[i].name) return &plugin()->kernels[i];
  return nullptr;
}

/// Whether a kernel of plugin() is compiled for calls of these types and this head_dim.
bool has(const assay_kernel &kernel, assay_dtype dtype, assay_dtype kv_dtype, int head_dim);

} // namespace assay::mutants
