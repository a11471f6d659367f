// SPDX-License-Identifier: Apache-2.0
// A run as bytes, between the harness and the process that the kernel runs in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "properties/call/tensors.h"
#include "properties/sut/sut.h"

namespace assay::wire {

using Message = std::vector<std::byte>;

/// What a kernel needs: the case and its memory, no expected value.
Message pack_request(const Tensors &t);
Tensors unpack_request(std::span<const std::byte> bytes);

/// What it did, and what it left in the buffers.
Message pack_reply(const RunResult &result, const Tensors &t);
/// Total: false for anything that is not a reply about `t`, whose buffers keep their sizes.
bool unpack_reply(std::span<const std::byte> bytes, RunResult &result, Tensors &t);

} // namespace assay::wire
