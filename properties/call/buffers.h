// SPDX-License-Identifier: Apache-2.0
// Buffers of a call, poison until something is written to them.
#pragma once

#include "properties/call/tensors.h"

namespace assay {

/// What assay.h promises of the addresses of arrays that are no matrices, in bytes.
inline constexpr size_t kArrayAlignment = 4;

/// Returns the index of the new buffer. Even an empty tensor gets an address of its own, a multiple
/// of `alignment`.
int add_buffer(Tensors &t, const std::string &name, bool output, size_t elements, Dtype dtype,
               size_t alignment = kArrayAlignment);

/// Marks elements of an input that carry values, or elements of an output that the call must write.
void mark_live(Tensors &t, int buffer, int size, int64_t index, int count);

/// Inputs that hold the values.
int add_floats(Tensors &t, const std::string &name, const std::vector<float> &values);
int add_ints(Tensors &t, const std::string &name, const std::vector<int> &values);

} // namespace assay
