// SPDX-License-Identifier: Apache-2.0
// What kernels/arch/simt calls: the executor as a running thread sees it. Every function here needs
// a launch in progress on the calling host thread, and throws std::logic_error without one. A
// function that finds a hazard does not return: the launch ends there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/counters.h"
#include "kernels/simt/function_ref.h"
#include "kernels/simt/hazard.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/number_table.h"

namespace assay::simt {

constexpr uint32_t kLanes = 32;

// The coordinates of the running thread. The executor keeps them current on every switch.
struct ThreadView {
  uint32_t thread = 0;
  uint32_t block_dim = 0;
  uint32_t block_idx[3] = {};
  uint32_t grid_dim[3] = {};
  uint32_t cluster_rank = 0, cluster_size = 1;
};
extern constinit thread_local ThreadView thread_view;
// The table of the stream during a launch; null without a stream.
extern constinit thread_local NumberTable *number_table;

// One access to memory. Every primitive reports its byte ranges here and nowhere else, so that
// every check of memory stands behind this function.
enum class Space : uint8_t { kShared, kGlobal };
enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kAtomic,      // read-modify-write; through atomic_access()
  kAtomicLoad,  // an atomic load, through atomic_access()
  kAtomicStore, // an atomic store, through atomic_access()
  kAsyncRead,   // the source of an async copy
  kAsyncWrite,  // the destination of one, in flight until its wait
  kBulkWrite,   // the destination of a bulk copy: who wrote there before must have fenced
  kMatrixRead,  // a matrix operation reads shared memory: its writer must have fenced
};
void access(Space space, AccessKind kind, const void *address, size_t bytes, size_t alignment,
            Site site);
// An access on behalf of another lane of the running warp, for the apply function of a collective.
void access_for_lane(uint32_t lane, Space space, AccessKind kind, const void *address, size_t bytes,
                     size_t alignment, Site site);

// An atomic operation on global memory, and fences. Threads change places inside the executor only,
// so that the caller reads and changes memory by plain code. These functions check what is ordered
// between blocks, and between devices.
// kTake is a load of what must be taken before it is overwritten: in a buffer whose readers are
// watched an atomic store, too, must be ordered behind it.
enum class AtomicKind : uint8_t { kLoad, kTake, kStore, kReadModifyWrite };
enum class AtomicOrder : uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel };
enum class Scope : uint8_t { kBlock, kCluster, kGpu, kSystem };
void atomic_access(const void *address, size_t bytes, AtomicKind kind, AtomicOrder order,
                   Scope scope, Site site);
void fence(Scope scope, Site site);

// Waits until the word at `address` is `value` or a later one (counted with wrap), and loads it
// with that order. Returns false where that cannot come: when nobody else on any device can run.
// That is how a wait ends which a device would end by its clock.
bool await_word(const uint32_t *address, uint32_t value, AtomicOrder order, Scope scope, Site site);
// Waits until `word`, one of the `bytes` at `message`, is `value`, and takes the message with a
// relaxed load. Ends like await_word.
bool await_message(const void *message, size_t bytes, const uint32_t *word, uint32_t value,
                   Scope scope, Site site);

// Shared memory of the block. `bytes` is what the kernel believes it has.
void *shared_base(size_t bytes, size_t alignment, Site site);

// Barriers.
void block_barrier(Site site);
void named_barrier(uint32_t id, uint32_t num_threads, Site site);

// Operations that all lanes of `mask` perform together. The last lane to arrive runs `apply` once
// for the whole group; then the other lanes resume. `in` and `out` point to the operands of one
// lane, which stay valid until it resumes.
struct WarpCall {
  Collective kind;
  uint32_t mask;
  uint32_t bytes; // bytes of one operand, equal on all lanes
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

// Barriers in shared memory (mbarrier). `count` arrivals complete a phase.
void mbarrier_init(void *barrier, uint32_t count, Site site);
void mbarrier_arrive(void *barrier, Site site);
void mbarrier_wait(void *barrier, uint32_t parity, Site site, Scope scope = Scope::kBlock);
// The phase needs `bytes` more of bulk copies.
void mbarrier_expect(void *barrier, uint32_t bytes, Site site);

// Makes what this thread has written to shared memory so far known to matrix operations and bulk
// copies, or the mbarriers alone that it has initialised.
void fence_async_proxy(Site site);
void fence_mbarrier_init(Site site);

// Bulk copies to shared memory, whose bytes an mbarrier counts. `fill` is called once and says what
// the copy consists of. With `blocks` every block of the cluster whose bit is set gets it, at the
// same place, and its own mbarrier counts the bytes; 0: this block alone.
struct BulkPiece {
  uint32_t offset; // from the destination
  uint32_t bytes;
  const void *source; // null: zeros
  // The executor's own:
  bool landed = false;
  AccessHistory *history = nullptr; // of the source; null where nobody may write to it
};
void bulk_copy(void *shared_destination, uint32_t bytes, uint32_t alignment, void *barrier,
               FunctionRef<void(std::vector<BulkPiece> &)> fill, Site site, uint32_t blocks = 0);

// Clusters: a barrier of all threads that have not exited, and what block `rank` has where this one
// has `address`. cluster_access() checks and returns the place.
void cluster_barrier(Site site);
void *cluster_access(AccessKind kind, const void *address, size_t bytes, uint32_t rank, Site site);
void mbarrier_arrive_cluster(void *barrier, uint32_t rank, Site site);

// Registers of the lane that runs the apply function.
struct Registers {
  const void *address;
  size_t bytes;
  bool holds(const Registers &other) const {
    const auto *begin = static_cast<const std::byte *>(address);
    const auto *of_other = static_cast<const std::byte *>(other.address);
    return begin <= of_other && of_other + other.bytes <= begin + bytes;
  }
};
// Matrix operations run beside the warps of a warpgroup (four warps). Each is a warp collective
// whose apply function calls what follows. The operations of a warp complete in order: at once, or
// at the wait that covers them.
class MatrixOperation {
public:
  virtual ~MatrixOperation() = default;
  // Is called at issue when the result comes later. It spoils the registers of the result, as what
  // they hold must not be read until then.
  virtual void postpone() = 0;
  virtual void complete() = 0;
  // Its result, a part of what a wait must name.
  virtual Registers result() const = 0;
  // Whether the result is new, and holds nothing of what the registers had.
  virtual bool overwrites() const = 0;
  // Whether the registers that it reads are still as they were.
  virtual bool operands_kept() const = 0;
};
// What the operation reads of shared memory stands in front, as accesses of kind kMatrixRead. It
// must not be overwritten before the wait.
void matrix_issue(std::unique_ptr<MatrixOperation> operation, Site site);
void matrix_fence(Site site);
void matrix_commit(Site site);
// `named` are the registers that may be used behind the wait.
void matrix_wait(uint32_t pending_groups, std::span<const Registers> named, Site site);

// Order with the kernel in front, in a launch that starts early. Before its wait a thread must not
// write, must not read what that kernel may write (Memory::mark_late), and must not start the next
// grid. No thread may exit without that wait.
void wait_for_previous_grid(Site site);
void start_next_grid(Site site);

// Ends the launch with a hazard of the running thread, or of `lane` of its warp.
[[noreturn]] void report(HazardKind kind, const std::string &text, Site site, Site other = {});
[[noreturn]] void report_for_lane(uint32_t lane, HazardKind kind, const std::string &text,
                                  Site site, Site other = {});

} // namespace assay::simt
