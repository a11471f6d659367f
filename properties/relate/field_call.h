// SPDX-License-Identifier: Apache-2.0
// Calls over ASSAY_FIELD61 and what they must return: a reference of its own, which shares nothing
// with the kernels.
#pragma once

#include <vector>

#include "properties/sut/sut.h"

namespace assay {

/// Whether the kernel has an instantiation over ASSAY_FIELD61.
bool computes_field(const assay_kernel &kernel);

/// The case with exact numbers: shapes, lengths, pages, strides and sharing as they are, head_dim
/// 64 for attention; every value an independent random number, dead words no number.
Tensors field_inputs(const Problem &p);

/// The value of one row in exact arithmetic: sum of 2^score, and O.
struct FieldRow {
  bool empty = true;
  uint64_t mass = 0;
  std::vector<uint64_t> o;
};
/// What lies in memory before a call, straight from the definition.
FieldRow field_reference(const Tensors &t, int row, int head);
/// What a call left; `wrong` says why when it left no value.
FieldRow field_result(const Tensors &t, int row, int head, std::string &wrong);

} // namespace assay
