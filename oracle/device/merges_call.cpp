// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/merges_call.h"

#include <algorithm>

#include "oracle/bounds/merge.h"

namespace assay::oracle::device {

MergeCall make_merge_call(const MergeRows &rows, const CallOutputs &outputs,
                          const KernelModel &model, const Place &place) {
  MergeCall call{};
  call.arrays = placed(rows.arrays, place);
  call.states = placed(rows.states, place);
  call.first = placed(rows.first, place);
  call.o_at = placed(rows.out.o_at, place);
  call.lse_at = placed(rows.out.lse_at, place);
  call.o = static_cast<const unsigned char *>(outputs.o);
  call.lse = outputs.lse;
  call.out_stride_head = rows.out.out_stride_head;
  call.lse_stride_head = rows.out.lse_stride_head;
  call.facts = merge_facts(model.arithmetic, rows.out.dtype, rows.out.lse_base);
  call.dtype = rows.out.dtype;
  call.empty_lse = rows.out.empty_lse;
  call.dims = rows.out.dims;
  call.heads = rows.out.heads;
  call.pairs = int64_t{rows.out.rows()} * rows.out.heads;
  for (size_t row = 1; row < rows.first.size(); ++row)
    call.most_states = std::max(call.most_states, rows.first[row] - rows.first[row - 1]);
  return call;
}

} // namespace assay::oracle::device

namespace assay::oracle {

std::string merges_refuse(const MergeRows &rows) {
  const assay_dtype dtype = rows.out.dtype;
  if (dtype != ASSAY_FP16 && dtype != ASSAY_BF16 && dtype != ASSAY_FP32) return "states are fp8";
  const auto bytes = static_cast<uintptr_t>(element_size(dtype));
  for (const StateArray &array : rows.arrays)
    if (reinterpret_cast<uintptr_t>(array.o) % bytes != 0) return "states in parts of elements";
  return "";
}

} // namespace assay::oracle
