// SPDX-License-Identifier: Apache-2.0
// A run as bytes, between the harness and the process that the kernel runs in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "properties/call/tensors.h"
#include "properties/sut/sut.h"

namespace assay::wire {

using Message = std::vector<std::byte>;

enum class Question : uint8_t { kRun, kKeyOrder, kBadCalls, kLimits };
struct Request {
  Question question;
  Tensors tensors;
};
/// What a kernel needs: the case and its memory, no expected value.
Message pack_request(Question question, const Tensors &t);
Request unpack_request(std::span<const std::byte> bytes);

/// What it did, and what it left in the buffers.
Message pack_reply(const RunResult &result, const Tensors &t);
/// Total: false for anything that is not a reply about `t`, whose buffers keep their sizes.
bool unpack_reply(std::span<const std::byte> bytes, RunResult &result, Tensors &t);

/// The order of keys of a call, or why there is none.
struct KeyOrderAnswer {
  std::string error;
  oracle::KeyOrder order;
};
Message pack_key_order(const KeyOrderAnswer &answer);
/// Total: false for anything else than an error, or the order of `requests` requests.
bool unpack_key_order(std::span<const std::byte> bytes, int requests, KeyOrderAnswer &answer);

/// What is wrong, a line each.
Message pack_lines(const std::vector<std::string> &lines);
/// Total: false for anything else.
bool unpack_lines(std::span<const std::byte> bytes, std::vector<std::string> &lines);

} // namespace assay::wire
