// SPDX-License-Identifier: Apache-2.0
// The explorer runs a small launch again and again, on every schedule that differs from those
// before it, up to a bound. It enumerates, depth first, who performs the next synchronising
// operation: an atomic operation, an arrival at an mbarrier or a named barrier, a wait for a phase
// or for a word, the issue of a bulk copy, and the moment at which its bytes come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/simt/function_ref.h"

namespace assay::simt {

struct Stream;

enum class Reduction : uint8_t {
  kOn,  // orders of operations that cannot matter are not run twice
  kOff, // every order of operations is run: to check the reduction
};

// What an exploration has covered.
struct Explored {
  uint64_t runs = 0;        // that differ
  uint64_t repeated = 0;    // runs that turned out to be like an earlier one, on top
  uint64_t choices = 0;     // of the run with most: operations before which several could go next
  uint64_t left = 0;        // known alternatives that were not run
  uint64_t hazards = 0;     // runs that a hazard ended: what lies behind it was not seen
  bool stopped = false;     // `run` returned false
  bool too_long = false;    // a run had more choices than are explored: `unmodelled` ended it
  bool complete = false;    // all schedules were run to their end
  std::string text() const; // one line
};

// Calls `run` once per schedule, until it returns false, no schedule is left, or `bound` runs are
// done. `run` launches on `stream` any number of times, on memory that is the same at the start of
// each run. It returns whether to go on. Copies of cp.async and matrix operations end as late as
// they may; the order and the copies of the stream's schedule do not count. Launches of run_ranks()
// are not explored. Throws std::logic_error where a run does not repeat what the one before did.
Explored explore(Stream &stream, uint64_t bound, FunctionRef<bool()> run,
                 Reduction reduction = Reduction::kOn);

// ---- for the executor ----

// An operation that somebody is about to perform: a thread of the block, or a bulk copy in flight.
struct Operation {
  enum class Kind : uint8_t {
    kRead,   // of memory
    kWrite,  // likewise, and a read-modify-write
    kArrive, // at an mbarrier: a thread, or the bytes of a copy
    kChange, // of what the phase of an mbarrier expects
    kWait,   // for the phase of an mbarrier
    kMeet,   // an arrival at a named barrier
  };
  Kind kind;
  const void *object; // null: any mbarrier
  uint32_t bytes = 0; // of memory
  uint32_t parity = 0;
};

class Explorer {
public:
  explicit Explorer(Reduction reduction) : reduces_(reduction == Reduction::kOn) {}
  static Explorer *of(const Stream *stream); // null: nobody explores its launches

  void begin_launch();
  void end_launch(bool hazard) { explored_.hazards += hazard; }
  // Which of the blocks that are left runs next.
  uint32_t choose_block(const std::vector<uint32_t> &left);
  void begin_block(uint32_t threads);
  // `who` will perform `operation`. A bulk copy follows from what its issuer did.
  void announce(uint32_t who, const Operation &operation, uint32_t issuer);
  const std::map<uint32_t, Operation> &announced() const { return announced_; }
  uint32_t participants() const { return static_cast<uint32_t>(clocks_.size()); }
  // Which of those who can perform their operation now goes next. Returns kNobody where the run
  // is too long to be explored.
  static constexpr uint32_t kNobody = ~0u;
  uint32_t choose(const std::vector<uint32_t> &ready);
  // What `who` announced happens now. At a barrier: whether all have arrived then, though bytes may
  // be missing, or whether it ends the phase.
  enum class Effect : uint8_t { kNone, kAllArrived, kEnds };
  void perform(uint32_t who, Effect effect);
  // Nobody of them goes on before all of them are there.
  void meet(const std::vector<uint32_t> &threads);

private:
  friend Explored explore(Stream &, uint64_t, FunctionRef<bool()>, Reduction);
  static constexpr size_t kMostChoices = 10000; // of a run

  using Who = std::vector<uint32_t>;
  using Clock = std::vector<uint32_t>; // by participant: its latest operation that is known, from 1
  struct Node {                        // a choice
    Who ready;
    Who waiting; // have announced what cannot happen yet
    Who to_try, tried;
    Who asleep; // need no try here: another run has it
    uint32_t chosen = 0;
    bool of_blocks = false;
  };
  struct Event { // an operation that was performed
    uint32_t who;
    Operation operation;
    uint32_t phase; // of the barrier, before it
    Effect effect;
    size_t node;
    Clock clock; // what is ordered before it, and itself
  };
  struct Phases { // of a barrier
    uint32_t number = 0;
    Clock arrived, complete;
  };

  static bool contains(const Who &set, uint32_t who);
  static void add(Who &set, uint32_t who);
  static bool dependent(const Event &earlier, const Event &later);
  static bool exclusive(const Event &earlier, const Event &later);
  static bool independent(const Operation &pending, const Event &event);
  static bool knows(const Clock &clock, const Event &event, size_t index);
  static void join(Clock &into, const Clock &from);
  uint32_t take(Who ready, bool of_blocks);
  void order(Event &event);
  bool order_before(size_t earlier, const Event &event);
  Who first_without(size_t earlier, const Event &event) const;
  void reverse_blocks(const Event &event);
  void count_phase(const Event &event);
  void fall_asleep(const Event &event);
  void begin_run();
  bool next_run();
  uint64_t alternatives() const;

  const bool reduces_;
  Explored explored_;
  std::vector<Node>
      nodes_; // the choices of this run; those from depth_ on are still to be repeated
  size_t depth_ = 0;
  uint64_t choices_ = 0;
  uint32_t latest_ = 0;       // chosen
  bool repeated_ = false;     // the rest of this run is like that of an earlier one
  bool differs_ = false;      // from what it should repeat
  std::vector<Event> events_; // of this launch
  size_t block_begin_ = 0;    // in events_
  std::map<uint32_t, Operation> announced_;
  std::vector<Clock> clocks_;
  std::map<const void *, Phases> phases_;
  Who sleeping_;
};

} // namespace assay::simt
