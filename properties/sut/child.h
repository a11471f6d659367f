// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "properties/sut/channel.h"
#include "properties/sut/hazard.h"

namespace assay {

/// The most memory of a process in which a kernel runs; there is no limit under AddressSanitizer,
/// whose shadow is larger.
inline constexpr uint64_t kMaxChildMemory = uint64_t{16} << 30;

/// The exit code of one of our own processes that cannot speak to the harness any more.
inline constexpr int kChannelGone = 213;

/// A process that a kernel runs in, and the channel to it. Started and stopped any number of times.
class Child {
public:
  explicit Child(std::chrono::milliseconds patience = kFirstPatience) : patience_(patience) {}
  Child(const Child &) = delete;
  ~Child() { stop(); }

  /// Runs `body` in a new process with its end of the channel; it must not return. `elsewhere`
  /// starts that process from another one: its number, or -1. Throws std::runtime_error where there
  /// is no process to be had.
  void start(const std::function<void(int fd)> &body,
             const std::function<pid_t(int fd)> &elsewhere = nullptr);
  bool started() const { return channel_.has_value(); }
  /// False once the process has ended.
  bool alive();
  Channel &channel() { return *channel_; }
  /// For a call that begins now.
  Deadline deadline() const { return {pid_, patience_}; }
  /// As if a call had taken too long before.
  void lose_patience();
  /// Why there is no reply by `until`; the process has ended, or is to be stopped.
  Hazard failure(const Deadline &until);
  /// Processor time of its processes so far, and what was waited for those that hung, in seconds.
  double spent() const;
  /// Ends the process, and those of its group where it leads one.
  void stop();

private:
  std::optional<Channel> channel_;
  /// waitpid() for the process; what it has used is counted once it has ended.
  bool reap(int *status, int flags);

  pid_t pid_ = -1;
  double spent_ = 0;
  bool counted_ = false; ///< it hung: what it uses is in the time that was waited
  std::chrono::milliseconds patience_;
};

/// What `say` returns in a process of its own; why there is nothing, where that ends or hangs.
std::string said_apart(const std::function<std::string()> &say);

/// What every such process does first: it ends with the harness and leaves no core. Calls nothing
/// that a process forked beside threads may not call.
void enter_child();

} // namespace assay
