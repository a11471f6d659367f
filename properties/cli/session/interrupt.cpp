// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/interrupt.h"

namespace assay {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free); // a handler may store

extern "C" void on_signal(int) { interrupted.store(true, std::memory_order_relaxed); }

} // namespace

StopOnSignal::StopOnSignal() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_RESETHAND; // the second signal is not ours
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

const std::atomic<bool> &StopOnSignal::flag() const { return interrupted; }

void StopOnSignal::request() { interrupted.store(true, std::memory_order_relaxed); }

} // namespace assay
