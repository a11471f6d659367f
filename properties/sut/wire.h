// SPDX-License-Identifier: Apache-2.0
// A run as bytes, between the harness and the process that the kernel runs in. The bytes of the
// buffers are not among them: both see those (shared_memory.h).
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
/// The largest message: that of a case with a million page-table entries and their physical pages.
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 33;

enum class Question : uint8_t { kRun, kKeyOrder, kBadCalls, kLimits };
struct Request {
  Question question = Question::kRun;
  uint64_t shared_bytes = 0; ///< bytes of the memory that both see
  /// What a kernel needs: the case and its memory, no expected value. Buffers have their sizes, and
  /// nobody there asks which of their bytes are live.
  Tensors tensors;
};
Message pack_request(Question question, uint64_t shared_bytes, const Tensors &t);
Request unpack_request(std::span<const std::byte> bytes);

/// What it did, and the exact numbers that it left.
Message pack_reply(const RunResult &result, const Tensors &t);
/// Total: false for anything that is not a reply; `t` is then what it was.
bool unpack_reply(std::span<const std::byte> bytes, RunResult &result, Tensors &t);

/// The order of keys of a call, or why there is none.
struct KeyOrderAnswer {
  std::string error;
  oracle::KeyOrder order;
  oracle::OrderError::Kind kind = oracle::OrderError::Kind::kEnded; ///< kind of the error
};
Message pack_key_order(const KeyOrderAnswer &answer);
/// Total: false for anything else than an error, or the order of `requests` requests.
bool unpack_key_order(std::span<const std::byte> bytes, int requests, KeyOrderAnswer &answer);

/// What the kernel says wrongly of calls that it is asked about.
Message pack_answers(const std::vector<WrongAnswer> &answers);
/// Total: false for anything else.
bool unpack_answers(std::span<const std::byte> bytes, std::vector<WrongAnswer> &answers);

} // namespace assay::wire
