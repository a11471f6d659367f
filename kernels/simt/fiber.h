// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "kernels/simt/asan.h"

namespace assay::simt {

// An execution context that can be left and resumed. The stack of the host thread is one, too.
struct FiberContext {
  boost::context::detail::fcontext_t suspended = nullptr;
  const void *stack_low = nullptr; // for the sanitizer annotations
  size_t stack_bytes = 0;
  void *fake_stack = nullptr;
};

// Leaves `from`, which the next switch to it resumes, and resumes `to`. It is inline because one
// collective of a full warp costs 31 switches.
inline void switch_fiber(FiberContext &from, FiberContext &to) {
#if ASSAY_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_low, to.stack_bytes);
#endif
  const boost::context::detail::transfer_t transfer =
      boost::context::detail::jump_fcontext(to.suspended, &from);
  // `from` runs again. Whoever switched to it can be resumed from here.
  static_cast<FiberContext *>(transfer.data)->suspended = transfer.fctx;
#if ASSAY_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Leaves `from` for good.
[[noreturn]] void exit_fiber(FiberContext &from, FiberContext &to);

// The entry function of a fiber calls it first. `origin` learns the bounds of the stack that was
// left, where it does not know them yet: where that is the stack of the host thread.
void enter_fiber(boost::context::detail::transfer_t transfer, FiberContext &origin);

// Stacks of one host thread, kept between launches. Below each stack lies a guard page.
class StackPool {
public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  // Makes `context` start at `entry` on stack number `index`. Creates stacks up to that number.
  void prepare(FiberContext &context, uint32_t index,
               void (*entry)(boost::context::detail::transfer_t));

  // Says that the first `count` fibers were abandoned while they ran. Under ASan the red zones of
  // their frames must be cleared before the stacks are used again.
  void mark_abandoned(uint32_t count);

private:
  struct Stack {
    bool abandoned = false;
    std::byte *mapping = nullptr;
    std::byte *low = nullptr; // above the guard page
  };
  void add_stack();
  std::vector<Stack> stacks_;
};

} // namespace assay::simt
