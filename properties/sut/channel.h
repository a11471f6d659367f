// SPDX-License-Identifier: Apache-2.0
// Messages over a socket to a process that may do anything with its end of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "properties/sut/wire.h"

namespace assay {

/// When waiting ends; none: never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// One end of a stream socket, which it owns. A message is its size (8 bytes) and its bytes.
class Channel {
public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel &) = delete;
  ~Channel();

  /// Both are false when the other end is gone or time is up; nothing more can be said then.
  bool send(std::span<const std::byte> message, Deadline until);
  /// Also false for a message of more than `most` bytes. A size alone allocates nothing.
  bool receive(wire::Message &message, Deadline until, uint64_t most);

private:
  bool ready(short events, Deadline until) const;
  bool send_bytes(const void *from, size_t size, Deadline until);
  bool receive_bytes(void *to, size_t size, Deadline until);
  int fd_;
};

} // namespace assay
