// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "kernels/simt/asan.h"

namespace assay::simt {

// An execution context that can be left and resumed; the host thread's own stack is one too.
struct FiberContext {
  boost::context::detail::fcontext_t suspended = nullptr;
  const void *stack_low = nullptr; // for the sanitizer annotations
  size_t stack_bytes = 0;
  void *fake_stack = nullptr;
};

// Leaves `from` (which the next switch to it resumes) and resumes `to`. Inline: a full-warp
// collective costs 31 of these.
inline void switch_fiber(FiberContext &from, FiberContext &to) {
#if ASSAY_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_low, to.stack_bytes);
#endif
  const boost::context::detail::transfer_t transfer =
      boost::context::detail::jump_fcontext(to.suspended, &from);
  // Running in `from` again: note where the one who switched here can be resumed.
  static_cast<FiberContext *>(transfer.data)->suspended = transfer.fctx;
#if ASSAY_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Leaves `from` for good.
[[noreturn]] void exit_fiber(FiberContext &from, FiberContext &to);

// Must be the first call of a fiber's entry function. `origin` learns the bounds of the stack that
// was left if it does not know them yet (the host thread's).
void enter_fiber(boost::context::detail::transfer_t transfer, FiberContext &origin);

// Stacks of one host thread, kept between launches. Each is followed downwards by a guard page.
class StackPool {
public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  // Makes `context` start at `entry` on stack number `index`, creating stacks as needed.
  void prepare(FiberContext &context, uint32_t index,
               void (*entry)(boost::context::detail::transfer_t));

  // Fibers were abandoned in mid-run: under ASan their frames' redzones must be cleared before the
  // stacks are used again.
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
