// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <signal.h>

namespace assay {

/// While it lives, the first SIGINT or SIGTERM sets flag() and the second ends the program as it
/// would without it. One at a time in a process.
class StopOnSignal {
public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal &) = delete;
  StopOnSignal &operator=(const StopOnSignal &) = delete;
  const std::atomic<bool> &flag() const;
  void request(); ///< sets flag() as the first signal does

private:
  struct sigaction before_int_, before_term_;
};

} // namespace assay
