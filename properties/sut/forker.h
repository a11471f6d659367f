// SPDX-License-Identifier: Apache-2.0
// A small process that forks those in which kernels run.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <mutex>

#include "kernels/abi/plugin.h"

namespace assay {

/// What a new process needs: the kernel, whose functions and strings were in memory when the forker
/// was started, and descriptors, of which it gets copies.
struct ForkRequest {
  assay_kernel kernel;
  int channel, memory, note;
};

/// Forked before the harness has made a case. Its processes are the harness's own children and see
/// nothing that the harness has made since: no other case, no seed, no expected value. They cost a
/// tenth of a fork of the harness, whose pages the kernel of the system would copy one by one,
/// hundreds of megabytes of them.
class Forker {
public:
  using Body = void (*)(const ForkRequest &); ///< it must not return

  /// Null where the system has no process for it. Call it before the first thread.
  static std::unique_ptr<Forker> start(Body body);
  Forker(const Forker &) = delete;
  ~Forker();

  /// The process, or -1. From any thread.
  pid_t fork(const ForkRequest &request);

private:
  Forker(pid_t process, int fd) : process_(process), fd_(fd) {}
  std::mutex one_at_a_time_;
  pid_t process_;
  int fd_;
};

} // namespace assay
