// SPDX-License-Identifier: Apache-2.0
// The state of the executor, for its own sources alone. Code that launches includes launch.h, and
// device code includes device.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/block_order.h"
#include "kernels/simt/device.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/ready_set.h"
#include "kernels/simt/schedule.h"
#include "kernels/simt/shared_memory.h"

namespace assay::simt {

class Explorer;

// report() throws it to unwind the thread that found a hazard, and the function in which the fiber
// began catches it. It is no std::exception, so that device code cannot catch it by accident.
struct HazardFound {};

class Executor {
public:
  // The executor of the launch in progress on this host thread. Throws std::logic_error where there
  // is none.
  static Executor &current() {
    if (!active_) refuse_outside_launch();
    return *active_;
  }
  static Executor *active() { return active_; } // null if none

  LaunchStatus run(Stream *stream, const LaunchConfig &config, FunctionRef<void()> body);

  // Runs a launch a block at a time, for several devices that take turns (ranks.cpp).
  struct Side {
    OrderGraph *graph; // the graph of all devices
    uint32_t device;
    LaunchNumbers numbers;                                                  // numbers of the launch
    OrderGraph::NodeId before;                                              // what its blocks see
    bool (*ordered)(const void *devices, uint32_t device, uint32_t launch); // by their stream
    const void *devices;
  };
  void begin_launch(Stream &stream, const LaunchConfig &config, const FunctionRef<void()> &body,
                    const Side &side);
  void begin_block(uint32_t linear);
  enum class Progress : uint8_t { kYielded, kFinished, kHazard };
  Progress resume();
  bool can_run() const; // a thread is ready, or a word that one waits for has its value
  void expire_waits();  // nobody can run: those who wait for words give up
  OrderGraph::NodeId end_block() { return order_.end_block(); }
  Hazard take_hazard() { return std::move(*hazard_); }
  void abandon_block() { stacks_.mark_abandoned(threads_); }

  // What a running thread calls; device.h tells of each.
  void block_barrier(Site site);
  void named_barrier(uint32_t id, uint32_t num_threads, Site site);
  void collective(const CollectiveArgs &args, Site site);
  void access(uint32_t thread, Space space, AccessKind kind, const void *address, size_t bytes,
              size_t alignment, Site site);
  void atomic_access(const void *address, size_t bytes, AtomicKind kind, AtomicOrder order,
                     Scope scope, Site site);
  bool await_word(const uint32_t *address, uint32_t value, AtomicOrder order, Scope scope,
                  Site site);
  bool await_message(const void *message, size_t bytes, const uint32_t *word, uint32_t value,
                     Scope scope, Site site);
  void fence(Scope scope, Site site);
  void raw_access(const void *address, size_t bytes, bool write, const void *pc);
  void *shared_base(size_t bytes, size_t alignment, Site site);
  void async_copy(void *destination, const void *source, size_t bytes, bool valid, Site site);
  void async_commit();
  void async_wait(uint32_t pending_groups, Site site);
  void mbarrier_init(void *barrier, uint32_t count, Site site);
  void mbarrier_arrive(void *barrier, Site site);
  void mbarrier_wait(void *barrier, uint32_t parity, Site site, Scope scope);
  void mbarrier_expect(void *barrier, uint32_t bytes, Site site);
  void fence_async_proxy(Site site);
  void fence_mbarrier_init(Site site);
  void bulk_copy(void *destination, uint32_t bytes, uint32_t alignment, void *barrier,
                 FunctionRef<void(std::vector<BulkPiece> &)> fill, Site site, uint32_t blocks);
  void cluster_barrier(Site site);
  void *cluster_access(AccessKind kind, const void *address, size_t bytes, uint32_t rank,
                       Site site);
  void mbarrier_arrive_cluster(void *barrier, uint32_t rank, Site site);
  void matrix_issue(std::unique_ptr<MatrixOperation> operation, Site site);
  void matrix_fence(Site site);
  void matrix_commit(Site site);
  void matrix_wait(uint32_t pending_groups, std::span<const Registers> named, Site site);
  void wait_for_previous_grid(Site site);
  void start_next_grid(Site site);
  [[noreturn]] void report(uint32_t thread, HazardKind kind, const std::string &text, Site site,
                           Site other = {});
  // Lets another thread run once in `one_in` calls, where the schedule draws that, and where it
  // holds a warp back. An apply function must not call it.
  void maybe_preempt(uint32_t one_in);
  uint32_t running() const { return running_; }
  uint32_t thread_of_lane(uint32_t lane) const { return running_ / kLanes * kLanes + lane; }

private:
  friend class Turns;
  static constinit thread_local Executor *active_;
  [[noreturn]] static void refuse_outside_launch();

  struct PendingCopy {
    size_t offset; // in shared memory
    size_t bytes;
    const void *source;
    uint32_t group;
    bool valid;
    bool landed;
    Site site;
    AccessHistory *source_history; // null where nobody may write to the source
  };
  enum class Wait : uint8_t {
    kNone,
    kBlockBarrier,
    kClusterBarrier,
    kNamedBarrier,
    kMbarrier,
    kCollective,
    kWord,
    kBytes,
    kTurn // under the explorer: for its turn
  };
  struct Fiber {
    FiberContext context;
    Wait wait = Wait::kNone; // stale while the thread is ready or running
    bool exited = false;
    bool early = false;       // has yet to wait for the grid in front
    uint8_t slot = 0;         // which barrier or group, by `wait`
    uint32_t proxy_fence = 0; // stamp of the latest
    uint32_t init_fence = 0;  // likewise, of fence_mbarrier_init
    uint32_t groups_committed = 0;
    Site site; // site of the latest operation
    std::vector<PendingCopy> copies;
    const uint32_t *word = nullptr; // that it waits for
    uint32_t wanted = 0;
    bool exactly = false; // a later value will not do
    bool expired = false;
    bool reached() const {
      return exactly ? *word == wanted : static_cast<int32_t>(*word - wanted) >= 0;
    }
  };
  struct Group { // lanes gathering for one collective
    WarpCall call;
    uint32_t arrived = 0;
  };
  struct PendingMatrix {
    std::unique_ptr<MatrixOperation> operation;
    bool complete;
    uint32_t group;
    uint32_t number; // in matrix_reads_
    Site site;
  };
  // What a matrix operation of this block has read, it has read up to its wait.
  struct MatrixReads {
    uint32_t done; // stamp of the wait; kInFlight before
    Site site;
  };
  static constexpr uint32_t kInFlight = ~0u;
  struct Warp {
    uint32_t absent = 0;                          // exited lanes, and lanes past the block's end
    bool fenced = false;                          // a matrix_fence since the last commit
    uint32_t matrix_groups = 0, matrix_steps = 0; // committed; operations issued
    std::vector<PendingMatrix> matrix;
    Site committed;      // the latest commit
    uint32_t active = 0; // bit g: groups[g] is gathering
    std::array<Group, kLanes> groups;
  };
  struct Barrier {
    uint32_t expected = 0;
    uint32_t arrived = 0;
    Site site; // site of the first arrival
    uint32_t first_thread = 0;
    std::array<uint64_t, kMaxBlockThreads / 64> waiting{};
  };
  static constexpr uint32_t kNamedBarriers = 16;
  struct Part;
  struct Mbarrier {
    const void *address;
    uint32_t count, arrived = 0, phase = 0;
    Site init, latest;    // latest arrival
    uint32_t maker, made; // who initialised it, and when
    std::array<uint64_t, kMaxBlockThreads / 64> waiting{};
    // Bytes of this phase: that it expects, of copies issued, and of those that have come.
    uint64_t expected = 0, issued = 0, come = 0;
    Site expect, copy;   // the latest
    Site far, near_wait; // an arrival of another block, and a wait that does not see it
    bool unseen = false; // nobody has waited since a phase with bulk copies
    bool all_arrived() const { return arrived == count; }
  };
  static constexpr uint32_t kMbarriers = 256;           // mbarriers of a block
  static constexpr uint64_t kMostBytes = (1 << 20) - 1; // of a phase
  // A bulk copy of a phase that has not ended.
  struct BulkCopy {
    uint32_t rank; // of the block that gets it
    size_t offset; // in its shared memory
    uint32_t bytes;
    uint32_t barrier; // in mbarriers_
    uint32_t thread;  // that issued it
    bool complete;
    Site site;
    std::vector<BulkPiece> pieces;
    uint32_t number = 0; // of who acts, under the explorer
  };
  static constexpr uint32_t kGroupWarps = 4; // warps of a warpgroup

  // executor.cpp: launching and switching
  bool config_ok(const LaunchConfig &config);
  void run_block(uint32_t linear);
  void reset_block(uint32_t linear);
  void enter_block(); // until it ends or yields
  void check_finished_block();
  static void fiber_entry(boost::context::detail::transfer_t transfer);
  FiberContext *leave_thread(); // bookkeeping of an exit; returns who runs next
  void now_running(uint32_t thread);
  void suspend();    // the running thread waits; returns when it runs again
  void find_ready(); // nobody is ready: returns once somebody is
  void yield();      // to other blocks and devices
  bool wake_reached();
  void switch_to(uint32_t thread);
  void hold_running_warp();

  // executor_cluster.cpp
  void enter_part(uint32_t thread);
  Part &part_of(uint32_t thread);
  const Part &part_of(uint32_t thread) const;
  std::string name_of(uint32_t thread) const; // "thread 5", "thread 5 of block 1"
  void check_rank(uint32_t rank, Site site);
  void *place_in(uint32_t rank, const void *address) const;
  void use_part(uint32_t rank, Site site);
  void end_part(Part &part, uint32_t thread);
  void end_cluster_barrier();

  // executor_sync.cpp
  uint32_t join_group(Warp &warp, const CollectiveArgs &args, Site site);
  void check_new_group(const Warp &warp, const CollectiveArgs &args, Site site);
  void release_barrier(Barrier &barrier);
  static uint32_t warps_at(const Barrier &barrier); // one bit a warp
  void check_whole_warps(const Barrier &barrier, uint32_t id, Site site);
  void check_same_warps(const Barrier &barrier, uint32_t id, Site site);

  // executor_memory.cpp
  void shared_access(uint32_t thread, AccessKind kind, const void *address, size_t bytes,
                     Site site);
  void global_access(uint32_t thread, AccessKind kind, const void *address, size_t bytes,
                     Site site);
  [[noreturn]] void report_misaligned(uint32_t thread, const void *address, size_t bytes,
                                      size_t alignment, Site site);
  void land(PendingCopy &copy);
  void order_landed(const PendingCopy &copy);
  void check_sources(uint32_t thread, const void *address, size_t bytes, Site site);
  Site pending_site(size_t offset, size_t bytes) const;

  // executor_order.cpp
  Writer access_of(uint32_t thread, How how, size_t bytes, Site site, bool takes) const;
  void check_order(uint32_t thread, How how, bool writes, const void *address, size_t bytes,
                   Site site, bool takes = false);
  void order_shared(uint32_t thread, AccessKind kind, const void *address, size_t bytes, Site site);
  bool knows(uint32_t thread, const Writer &access); // of the running block
  bool warp_knows(uint32_t thread, const Writer &access);
  bool write_is_ordered(uint32_t thread, const Readers &readers);
  bool wait_for_word(const uint32_t *word, uint32_t value, bool exactly, Site site);
  bool beside(const Writer &access) const;
  void check_other(const Writer &other, bool other_writes, const Writer &mine, bool writes,
                   const void *address, size_t bytes);

  // executor_mbarrier.cpp
  Mbarrier &mbarrier_at(const void *address, Site site);
  uint32_t slot_of(const Mbarrier &barrier) const {
    return static_cast<uint32_t>(&barrier - mbarriers_.data());
  }
  void check_scope(const Mbarrier &barrier);
  void check_bytes(const Mbarrier &barrier, uint32_t thread, Site site);
  uint32_t complete_phase(Mbarrier &barrier);
  void go_on_with(uint32_t waiter);
  const Mbarrier *short_of_bytes(uint32_t thread) const;
  void check_mbarriers_left();

  // executor_bulk.cpp
  void check_destination(const Mbarrier &barrier, void *destination, uint32_t bytes,
                         uint32_t alignment, Site site);
  void issue_bulk_copy(uint32_t rank, void *destination, uint32_t bytes, uint32_t alignment,
                       void *address, Site site);
  void check_source(BulkPiece &piece, Site site);
  void land_some(BulkCopy &copy, uint32_t one_in);
  bool bytes_have_come(BulkCopy &copy); // returns whether they end the phase
  uint32_t complete_bulk_copy(BulkCopy &copy);
  void complete_since(size_t first);
  bool complete_any_bulk_copy();
  void maybe_complete_bulk_copy();
  void end_bulk_copies(Mbarrier &barrier);

  // executor_matrix.cpp
  void check_proxy(uint32_t thread, const Writer &writer, const void *address, bool matrix,
                   Site site);
  void check_named(const PendingMatrix &pending, std::span<const Registers> named, bool complete,
                   Site site);
  void check_left_behind(); // once all threads of a block have exited

  // executor_unordered.cpp
  [[noreturn]] void report_unordered(const Writer &mine, bool writes, const Writer &other,
                                     bool other_writes, const std::string &place);
  [[noreturn]] void report_shared(const Writer &mine, bool writes, const Writer &other,
                                  bool other_writes, const void *address, size_t bytes);
  [[noreturn]] void report_overwritten(const Writer &mine, const Readers &readers,
                                       const void *address, size_t bytes);
  [[noreturn]] void await_writer(uint32_t thread, HazardKind kind, std::string text,
                                 const void *address, size_t bytes, Site site);
  [[noreturn]] void found_writer(uint32_t thread, Site site);
  void check_awaited(const void *address, size_t bytes, uint32_t thread, Site site) {
    if (undefined_ && undefined_->begin < static_cast<const std::byte *>(address) + bytes &&
        address < static_cast<const void *>(undefined_->end)) [[unlikely]]
      found_writer(thread, site);
  }
  [[noreturn]] void report_undefined();

  // executor_report.cpp
  void record(Hazard hazard);
  [[noreturn]] void report_stall();
  std::string who_waits_where() const;
  std::string describe_wait(uint32_t thread) const;

  Stream *stream_ = nullptr;
  Counters *counters_ = nullptr;
  Counters scratch_counters_;
  Schedule schedule_;
  ScheduleRandom random_{0};
  LaunchConfig config_;
  const FunctionRef<void()> *body_ = nullptr;
  std::optional<Hazard> hazard_;

  StackPool stacks_;
  FiberContext main_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  ReadySet ready_;
  uint32_t running_ = 0;
  uint32_t until_hold_ = 0; // points; 0: no hold is left
  size_t next_hold_ = 0;
  struct Fine {                    // a schedule that preempts at any access
    uint32_t distance = 0;         // Schedule::distance, or by seed; 0: shared accesses alone count
    const void *checked = nullptr; // the latest access that was checked
    size_t bytes = 0;
    bool applying = false; // an apply function runs
  } fine_;
  uint32_t threads_ = 0; // of the cluster
  uint32_t live_ = 0;
  uint32_t block_ = 0;
  bool stalled_ = false; // nobody can run: the running thread waits, too
  // The warps that met last at a named barrier since the block barrier, and where; 0: none did.
  struct Meeting {
    uint32_t warps = 0;
    Site site;
  };
  // What a block of the running cluster has for itself.
  struct Use {
    uint32_t stamp = 0; // 0: none
    Site site;
  };
  struct Part {
    uint32_t rank = 0, live = 0;
    SharedMemory shared;
    Barrier block_barrier;
    std::array<Barrier, kNamedBarriers> named_barriers;
    std::array<Meeting, kNamedBarriers> meetings;
    std::vector<Use> uses; // of its shared memory by other blocks, the latest of each thread
  };
  std::vector<Part> parts_ = std::vector<Part>(1);
  Part *part_ = parts_.data(); // of the running thread
  uint32_t part_start_ = 0;    // stamp
  Barrier cluster_barrier_;
  std::vector<Mbarrier> mbarriers_;
  std::vector<BulkCopy> bulk_copies_;
  std::vector<BulkPiece> pieces_;               // of the copy that is being issued
  std::vector<std::vector<Site>> matrix_steps_; // per warpgroup, the operations in order
  std::vector<MatrixReads> matrix_reads_;       // of the block, by number
  uint32_t sources_in_flight_ = 0;              // copies whose source may be written to
  // A read of bytes that nobody has written, while the others run on: who writes them then is the
  // second party.
  struct Undefined {
    const std::byte *begin, *end;
    uint32_t thread;
    HazardKind kind;
    std::string text;
    Site site;
  };
  std::optional<Undefined> undefined_;
  std::vector<uint32_t> word_waiters_; // threads
  bool yielded_ = false;
  ThreadView view_; // view of a block that has yielded
  OrderGraph own_graph_;
  BlockOrder order_;
  LaunchNumbers launch_; // numbers of the launch in the stream's memory
  std::optional<Side> side_;
  Explorer *explorer_ = nullptr; // null: nobody explores this launch
};

std::string lane_mask_text(uint32_t mask); // "0x0000ffff"

// ---- the hot path, inline ----
// NOTE: jump_fcontext leaves by an indirect jump, so that the CPU mispredicts every `ret` between
// it and the kernel. With these functions inline there is one call level between, and one such
// `ret`.

inline void Executor::now_running(uint32_t thread) {
  running_ = thread;
  thread_view.thread = thread;
  if (config_.cluster > 1) [[unlikely]]
    enter_part(thread);
}

inline void Executor::switch_to(uint32_t thread) {
  FiberContext &from = fibers_[running_].context;
  now_running(thread);
  ++counters_->fiber_switches;
  switch_fiber(from, fibers_[thread].context);
}

inline void Executor::suspend() {
  if (ready_.empty()) find_ready();
  const uint32_t next = ready_.take(schedule_.order, random_);
  if (next != running_) switch_to(next); // a wait for a word may end where it began
}

inline void Executor::maybe_preempt(uint32_t one_in) {
  if (until_hold_ != 0 && --until_hold_ == 0) [[unlikely]]
    hold_running_warp();
  else if (schedule_.order != Order::kSeeded || random_.below(one_in) != 0) [[likely]]
    return;
  ready_.insert(running_);
  const uint32_t next = ready_.take(schedule_.order, random_);
  if (next != running_) switch_to(next);
}

} // namespace assay::simt
