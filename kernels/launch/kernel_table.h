// SPDX-License-Identifier: Apache-2.0
// One target's kernels behind plain function pointers, so that the entry points are written once.
#pragma once

#include "kernels/launch/calls.h"
#include "kernels/launch/merge_calls.h"

namespace assay {

struct KernelTable {
  struct Decode {
    assay_dtype dtype, kv_dtype;
    int head_dim;
    assay_status (*v1)(const PagedCall &, void *stream);
    assay_status (*v2)(const PagedV2Call &, void *stream);
    assay_status (*cascade)(const CascadeCall &, void *stream);
  };
  const Decode *decode;
  int num_decode;
  assay_status (*plan)(const SplitPlanShape &, const int32_t *seq_lens, void *plan, void *stream);
  assay_status (*merge_state)(const MergeStateCall &, void *stream);
  assay_status (*merge_states)(const MergeStatesCall &, void *stream);

  const Decode *find(assay_dtype dtype, assay_dtype kv_dtype, int head_dim) const {
    for (int i = 0; i < num_decode; ++i)
      if (decode[i].dtype == dtype && decode[i].kv_dtype == kv_dtype &&
          decode[i].head_dim == head_dim)
        return &decode[i];
    return nullptr;
  }
};

namespace n_simt {
const KernelTable &kernel_table();
}
namespace n_cuda {
const KernelTable &kernel_table();
}

} // namespace assay
