// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/fiber.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace assay::simt {
namespace {

namespace ctx = boost::context::detail;

constexpr size_t kPage = 4096;
// The frames of a kernel take a few KiB; the red zones of a sanitizer multiply that.
constexpr size_t kStackBytes = ASSAY_ASAN ? 512 * 1024 : 128 * 1024;
// NOTE: stacks at equal offsets modulo 4 KiB would put the live frames of all fibers into the same
// few sets of L1. The tops of the stacks are shifted against each other to spread the frames.
constexpr size_t kColours = 16;
constexpr size_t kColourBytes = 832; // odd number of cache lines
constexpr size_t kUsableBytes = kStackBytes - kPage;

} // namespace

void exit_fiber(FiberContext &from, FiberContext &to) {
#if ASSAY_ASAN
  // Null says that the fiber ends here: its fake stack can go.
  __sanitizer_start_switch_fiber(nullptr, to.stack_low, to.stack_bytes);
#endif
  ctx::jump_fcontext(to.suspended, &from);
  std::abort(); // unreachable: nobody resumes a fiber that has exited
}

void enter_fiber(ctx::transfer_t transfer, [[maybe_unused]] FiberContext &origin) {
  static_cast<FiberContext *>(transfer.data)->suspended = transfer.fctx;
#if ASSAY_ASAN
  const void *old_low = nullptr;
  size_t old_bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &old_low, &old_bytes);
  if (transfer.data == &origin) {
    origin.stack_low = old_low;
    origin.stack_bytes = old_bytes;
  }
#endif
}

StackPool::~StackPool() {
  for (const Stack &stack : stacks_) {
    asan_unpoison(stack.low, kUsableBytes);
    munmap(stack.mapping, kStackBytes);
  }
}

void StackPool::add_stack() {
  void *mapping = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(mapping, kPage, PROT_NONE) != 0) {
    munmap(mapping, kStackBytes);
    throw std::bad_alloc();
  }
  Stack stack;
  stack.mapping = static_cast<std::byte *>(mapping);
  stack.low = stack.mapping + kPage;
  stacks_.push_back(stack);
}

void StackPool::mark_abandoned(uint32_t count) {
  for (uint32_t i = 0; i < count && i < stacks_.size(); ++i)
    stacks_[i].abandoned = true;
}

void StackPool::prepare(FiberContext &context, uint32_t index, void (*entry)(ctx::transfer_t)) {
  while (stacks_.size() <= index)
    add_stack();
  Stack &stack = stacks_[index];
  const size_t colour = (index % kColours) * kColourBytes;
  const size_t usable = kUsableBytes - colour;
  if (stack.abandoned) asan_unpoison(stack.low, kUsableBytes);
  stack.abandoned = false;
  context.stack_low = stack.low;
  context.stack_bytes = usable;
  context.fake_stack = nullptr;
  context.suspended = ctx::make_fcontext(stack.low + usable, usable, entry);
}

} // namespace assay::simt
