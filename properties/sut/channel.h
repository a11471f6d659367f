// SPDX-License-Identifier: Apache-2.0
// Messages over a socket to a process that may do anything with its end of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "properties/sut/wire.h"

namespace assay {

/// Waiting for a process ends once it has used `patience` of processor time, or has slept that
/// long. A process that shares its processor with others uses less time than goes by: it gets up
/// to twenty times as long. The time of processes that it has started does not count.
class Deadline {
public:
  Deadline(std::nullopt_t) {} ///< never
  Deadline(pid_t process, std::chrono::milliseconds patience);
  bool over() const;
  /// Milliseconds to wait before asking again; -1: for ever.
  int pause() const;

private:
  double used() const; ///< by the process since waiting began, in seconds
  pid_t process_ = -1;
  double patience_ = 0, used_before_ = 0; ///< seconds; no patience: never over
  std::chrono::steady_clock::time_point start_;
};

/// One end of a stream socket, which it owns. A message is its size (8 bytes) and its bytes.
class Channel {
public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(const Channel &) = delete;
  ~Channel();

  /// Both are false when the other end is gone or time is up; nothing more can be said then.
  bool send(std::span<const std::byte> message, const Deadline &until);
  /// Also false for a message of more than `most` bytes. A size alone allocates nothing.
  bool receive(wire::Message &message, const Deadline &until, uint64_t most);

private:
  bool ready(short events, const Deadline &until) const;
  bool send_bytes(const void *from, size_t size, const Deadline &until);
  bool receive_bytes(void *to, size_t size, const Deadline &until);
  int fd_;
};

} // namespace assay
