// SPDX-License-Identifier: Apache-2.0
// A call in words that need no C: parameters by their names in kernels/abi/assay.h, tensors by
// dtype, shape, strides and place.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "properties/call/tensors.h"
#include "properties/sut/shared_memory.h"
#include "properties/sut/sut.h"

namespace assay {

/// Everything that a kernel is told. A tensor is null, or {dtype, shape, strides (elements),
/// offset (bytes), output}. The offset of a pool whose page ids begin high may be negative: only
/// its pages in use lie in memory.
nlohmann::json describe_call(const Tensors &t, const CallLayout &layout);

/// Reads the reply to request `id`. Total: false for anything that is not one.
bool read_reply(const std::string &text, uint64_t id, RunResult &result);

} // namespace assay
