// SPDX-License-Identifier: Apache-2.0
// What kernels/arch/simt calls: the executor as seen from inside a running thread. Every function
// here needs a launch in progress on the calling host thread; outside one it throws
// std::logic_error. A hazard does not return: the launch ends there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/counters.h"
#include "kernels/simt/hazard.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/number_table.h"

namespace assay::simt {

constexpr uint32_t kLanes = 32;

// The coordinates of the running thread; kept current by the executor on every switch.
struct ThreadView {
  uint32_t thread = 0;
  uint32_t block_dim = 0;
  uint32_t block_idx[3] = {};
  uint32_t grid_dim[3] = {};
};
extern constinit thread_local ThreadView thread_view;
// The stream's, during a launch; null without a stream.
extern constinit thread_local NumberTable *number_table;

// One access to memory. Every primitive reports its byte ranges here and nowhere else, so this is
// where checks of ordering attach.
enum class Space : uint8_t { kShared, kGlobal };
enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kAtomic,     // read-modify-write; through atomic_access()
  kAsyncRead,  // the source of an async copy
  kAsyncWrite, // its destination, in flight until waited for
  kMatrixRead, // shared memory, by a matrix operation: what threads wrote must be fenced
};
void access(Space space, AccessKind kind, const void *address, size_t bytes, size_t alignment,
            Site site);
// The same on behalf of another lane of the running warp (from a collective's apply function).
void access_for_lane(uint32_t lane, Space space, AccessKind kind, const void *address, size_t bytes,
                     size_t alignment, Site site);

// An atomic read-modify-write of global memory, and fences. Blocks run one after the other, so what
// they do is plain; what they order between blocks is checked.
enum class AtomicOrder : uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel };
enum class Scope : uint8_t { kBlock, kGpu };
void atomic_access(const void *address, size_t bytes, AtomicOrder order, Scope scope, Site site);
void fence(Scope scope, Site site);

// Shared memory of the block. `bytes` is what the kernel believes it has.
void *shared_base(size_t bytes, size_t alignment, Site site);

// Barriers.
void block_barrier(Site site);
void named_barrier(uint32_t id, uint32_t num_threads, Site site);

// Operations performed by all lanes of `mask` together. The last lane to arrive runs `apply` once
// for the whole group; the others then resume. `in` and `out` point to this lane's operands and
// stay valid until then.
struct WarpCall {
  Collective kind;
  uint32_t mask;
  uint32_t bytes; // of one operand; the same on all lanes by construction of the primitives
  Site site;
  const void *in[kLanes];
  void *out[kLanes];
  int32_t arg[kLanes];
};
using ApplyFunction = void (*)(const WarpCall &call);
struct CollectiveArgs {
  Collective kind;
  uint32_t mask;
  uint32_t bytes;
  const void *in;
  void *out;
  int32_t arg;
  ApplyFunction apply;
};
void warp_collective(const CollectiveArgs &args, Site site);

// Async copies of the running thread.
void async_copy(void *shared_destination, const void *global_source, size_t bytes, bool valid,
                Site site);
void async_commit();
void async_wait(uint32_t pending_groups, Site site);

// Barriers in shared memory (mbarrier): `count` arrivals complete a phase.
void mbarrier_init(void *barrier, uint32_t count, Site site);
void mbarrier_arrive(void *barrier, Site site);
void mbarrier_wait(void *barrier, uint32_t parity, Site site);

// What this thread has written to shared memory so far may be read by matrix operations.
void fence_async_proxy(Site site);

// Matrix operations run beside the warps of a warpgroup (four warps). They are warp collectives
// whose apply functions call these: operations of a warp complete in order, at issue or at the wait
// that covers them.
class MatrixOperation {
public:
  virtual ~MatrixOperation() = default;
  // At issue, when the result comes later: what the results' registers hold is lost.
  virtual void postpone() = 0;
  virtual void complete() = 0;
};
struct SharedRange {
  const void *address;
  size_t bytes;
};
// reads: what must not be overwritten before the wait.
void matrix_issue(std::unique_ptr<MatrixOperation> operation, std::vector<SharedRange> reads,
                  Site site);
void matrix_fence(Site site);
void matrix_commit(Site site);
void matrix_wait(uint32_t pending_groups, Site site);

// Order with the kernel in front, in a launch that starts early. Before its wait a thread must not
// write, not read what that kernel may write (Memory::mark_late), not start the next grid; and none
// may exit without it.
void wait_for_previous_grid(Site site);
void start_next_grid(Site site);

// Ends the launch with a hazard of the running thread (or of `lane` of its warp).
[[noreturn]] void report(HazardKind kind, const std::string &text, Site site, Site other = {});
[[noreturn]] void report_for_lane(uint32_t lane, HazardKind kind, const std::string &text,
                                  Site site, Site other = {});

} // namespace assay::simt
