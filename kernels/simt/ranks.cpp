// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ranks.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/simt/executor.h"

namespace assay::simt {
namespace {

using NodeId = OrderGraph::NodeId;

// Executors keep stacks and tables, so that a host thread keeps some of those that it had. (A stack
// takes two of the 65,530 mappings of a process, and many host threads may do the same.)
class ExecutorPool {
public:
  std::unique_ptr<Executor> take() {
    if (idle_.empty()) return std::make_unique<Executor>();
    auto executor = std::move(idle_.back());
    idle_.pop_back();
    return executor;
  }
  void give_back(std::unique_ptr<Executor> executor) {
    if (idle_.size() < kMost) idle_.push_back(std::move(executor));
  }

private:
  static constexpr size_t kMost = 6;
  std::vector<std::unique_ptr<Executor>> idle_;
};
thread_local ExecutorPool executors;

class RankRun {
public:
  RankRun(Stream &stream, uint32_t count, FunctionRef<void(uint32_t)> body)
      : stream_(stream), body_(body), random_(stream.schedule.seed), ranks_(count),
        first_launch_(stream.memory.launches() + 1) {}

  void run();
  LaunchStatus launch(const LaunchConfig &config, const FunctionRef<void()> &body);
  bool serves(const Stream *stream) const { return stream == &stream_ && in_body_; }

  static thread_local RankRun *active;

private:
  struct Launch {
    LaunchConfig config;
    const FunctionRef<void()> *body;
    Executor::Side side;
    std::vector<uint32_t> blocks; // in the order in which they begin
    size_t next = 0;
    std::vector<std::unique_ptr<Executor>> begun; // and not ended
    NodeId knowledge = 0;                         // what the ended blocks knew
    LaunchStatus status = LaunchStatus::kOk;
    bool ended() const { return begun.empty() && next == blocks.size(); }
  };
  struct Rank {
    FiberContext context;
    bool ended = false;
    std::optional<Launch> launch; // in progress
    uint32_t launches = 0;
    uint32_t latest = 0; // number of its latest launch
    NodeId before = 0;   // what its next launch knows before
  };
  // Who may go next: a body, a block that has begun, or a block that begins.
  struct Turn {
    uint32_t rank;
    enum Kind : uint8_t { kBody, kGoOn, kBegin } kind;
    size_t block = 0;
  };

  static void fiber_entry(boost::context::detail::transfer_t transfer);
  static bool ordered(const void *run, uint32_t rank, uint32_t launch);
  void add_turns(uint32_t rank, std::vector<Turn> &turns) const;
  const Turn &choose(const std::vector<Turn> &turns);
  void take(const Turn &turn);
  void run_body(uint32_t rank);
  void go_on(uint32_t rank, size_t block);
  void stop(Launch &launch);
  bool expire();
  std::vector<uint32_t> block_order(uint32_t blocks, uint32_t nth_launch) const;

  Stream &stream_;
  FunctionRef<void(uint32_t)> body_;
  ScheduleRandom random_;
  std::vector<Rank> ranks_;
  uint32_t first_launch_;
  std::vector<uint32_t> rank_of_; // by launch, less first_launch_
  OrderGraph graph_;
  StackPool stacks_;
  FiberContext main_;
  uint32_t running_ = 0;
  bool in_body_ = false;
  std::exception_ptr error_;
};

thread_local RankRun *RankRun::active = nullptr;

// ---- bodies ----

void RankRun::fiber_entry(boost::context::detail::transfer_t transfer) {
  RankRun &run = *active;
  enter_fiber(transfer, run.main_);
  const uint32_t rank = run.running_;
  try {
    run.body_(rank);
  } catch (...) {
    if (!run.error_) run.error_ = std::current_exception();
  }
  run.ranks_[rank].ended = true;
  exit_fiber(run.ranks_[rank].context, run.main_);
}

void RankRun::run_body(uint32_t rank) {
  running_ = rank;
  in_body_ = true;
  switch_fiber(main_, ranks_[rank].context);
  in_body_ = false;
}

// The launches of a rank are ordered, and all are behind those in front of run_ranks().
bool RankRun::ordered(const void *run, uint32_t rank, uint32_t launch) {
  const auto &self = *static_cast<const RankRun *>(run);
  return launch < self.first_launch_ || self.rank_of_[launch - self.first_launch_] == rank;
}

std::vector<uint32_t> RankRun::block_order(uint32_t blocks, uint32_t nth_launch) const {
  std::vector<uint32_t> order(std::max(1u, blocks)); // a launch without blocks is refused there
  std::iota(order.begin(), order.end(), 0u);
  if (stream_.schedule.order == Order::kDescending) std::reverse(order.begin(), order.end());
  if (stream_.schedule.order != Order::kSeeded) return order;
  ScheduleRandom random(stream_.schedule.seed + nth_launch); // all ranks have the same seed
  for (uint32_t i = blocks; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

LaunchStatus RankRun::launch(const LaunchConfig &config, const FunctionRef<void()> &body) {
  Rank &rank = ranks_[running_];
  LaunchNumbers numbers;
  numbers.own = stream_.memory.begin_launch();
  numbers.front = rank.latest != 0 ? rank.latest : first_launch_ - 1;
  numbers.oldest = first_launch_;
  rank_of_.resize(numbers.own - first_launch_ + 1, running_);
  rank.latest = numbers.own;
  rank.launch = Launch{};
  Launch &launch = *rank.launch;
  launch.config = config;
  launch.body = &body;
  launch.side = {&graph_, running_, numbers, rank.before, &RankRun::ordered, this};
  launch.blocks = block_order(config.grid_x * config.grid_y * config.grid_z, rank.launches++);
  switch_fiber(rank.context, main_); // until the launch has ended
  const LaunchStatus status = launch.status;
  rank.before = graph_.add_launch(numbers.own, graph_.join(rank.before, launch.knowledge));
  rank.launch.reset();
  return status;
}

// ---- turns ----

void RankRun::add_turns(uint32_t r, std::vector<Turn> &turns) const {
  const Rank &rank = ranks_[r];
  if (rank.ended) return;
  if (!rank.launch || rank.launch->ended()) return turns.push_back({r, Turn::kBody});
  const Launch &launch = *rank.launch;
  bool runs = false;
  for (size_t i = 0; i < launch.begun.size(); ++i)
    if (launch.begun[i]->can_run()) {
      turns.push_back({r, Turn::kGoOn, i});
      runs = true;
    }
  if (!runs && launch.next < launch.blocks.size() && launch.begun.size() < kBesideEachOther)
    turns.push_back({r, Turn::kBegin});
}

const RankRun::Turn &RankRun::choose(const std::vector<Turn> &turns) {
  if (stream_.schedule.order == Order::kAscending) return turns.front();
  if (stream_.schedule.order == Order::kDescending) return turns.back();
  return turns[random_.below(static_cast<uint32_t>(turns.size()))];
}

void RankRun::take(const Turn &turn) {
  if (turn.kind == Turn::kBody) return run_body(turn.rank);
  Launch &launch = *ranks_[turn.rank].launch;
  if (turn.kind == Turn::kGoOn) return go_on(turn.rank, turn.block);
  auto executor = executors.take();
  executor->begin_launch(stream_, launch.config, *launch.body, launch.side);
  executor->begin_block(launch.blocks[launch.next++]);
  launch.begun.push_back(std::move(executor));
  go_on(turn.rank, launch.begun.size() - 1);
}

void RankRun::go_on(uint32_t rank, size_t block) {
  Launch &launch = *ranks_[rank].launch;
  Executor &executor = *launch.begun[block];
  switch (executor.resume()) {
  case Executor::Progress::kYielded:
    return;
  case Executor::Progress::kFinished:
    launch.knowledge = graph_.join(launch.knowledge, executor.end_block());
    executors.give_back(std::move(launch.begun[block]));
    launch.begun.erase(launch.begun.begin() + static_cast<ptrdiff_t>(block));
    return;
  case Executor::Progress::kHazard:
    stream_.hazards.push_back(executor.take_hazard());
    return stop(launch);
  }
}

// Ends a launch in which a hazard was found.
void RankRun::stop(Launch &launch) {
  for (auto &executor : launch.begun) {
    executor->abandon_block();
    executors.give_back(std::move(executor));
  }
  launch.begun.clear();
  launch.next = launch.blocks.size();
  launch.status = LaunchStatus::kHazard;
}

// Nobody can run: whoever waits for a word gives up. Returns whether there is anybody.
bool RankRun::expire() {
  bool any = false;
  for (Rank &rank : ranks_)
    if (rank.launch)
      for (auto &executor : rank.launch->begun) {
        executor->expire_waits();
        any = true;
      }
  return any;
}

void RankRun::run() {
  for (uint32_t r = 0; r < ranks_.size(); ++r)
    stacks_.prepare(ranks_[r].context, r, &RankRun::fiber_entry);
  std::vector<Turn> turns;
  for (;;) {
    turns.clear();
    for (uint32_t r = 0; r < ranks_.size(); ++r)
      add_turns(r, turns);
    if (!turns.empty())
      take(choose(turns));
    else if (!expire())
      break;
  }
  if (error_) std::rethrow_exception(error_);
}

} // namespace

// ---- entry points ----

void run_ranks(Stream &stream, uint32_t count, FunctionRef<void(uint32_t rank)> body) {
  if (RankRun::active || Executor::active())
    throw std::logic_error("assay::simt: run_ranks inside a launch or another run_ranks");
  if (count == 0 || count > kMaxRanks)
    throw std::logic_error("assay::simt: run_ranks with " + std::to_string(count) +
                           " ranks; 1 to 8 are possible");
  RankRun run(stream, count, body);
  RankRun::active = &run;
  try {
    run.run();
  } catch (...) {
    RankRun::active = nullptr;
    throw;
  }
  RankRun::active = nullptr;
}

bool on_rank(const Stream *stream) { return RankRun::active && RankRun::active->serves(stream); }

LaunchStatus launch_on_rank(const LaunchConfig &config, FunctionRef<void()> thread_body) {
  return RankRun::active->launch(config, thread_body);
}

} // namespace assay::simt
