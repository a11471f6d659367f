// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/abi/plugin.h"
#include "kernels/simt/explorer.h"
#include "oracle/judge/key_order.h"
#include "properties/call/tensors.h"
#include "properties/sut/assumed.h"
#include "properties/sut/hazard.h"
#include "properties/sut/wrong_answer.h"

namespace assay {

class DeviceOracle;
class Forker;

/// How long a call may take in a process of its own. The first that takes longer may merely be
/// slow; when one did, the next ones of its kernel get less.
inline constexpr std::chrono::milliseconds kFirstPatience{60'000}, kLaterPatience{5'000};

/// What a run did, apart from the outputs (which are in the Tensors).
struct RunResult {
  assay_status status = ASSAY_OK;
  std::string message; ///< message of a status other than ASSAY_OK
  std::vector<Hazard> hazards;
  std::vector<Violation> violations; ///< each once
  std::map<std::string, uint64_t> counters;
};

/// The system under test: one kernel on one target. Not thread-safe; make one per thread.
class Sut {
public:
  explicit Sut(const assay_kernel &kernel) : kernel_(kernel) {}
  virtual ~Sut() = default;
  Sut(const Sut &) = delete;
  Sut &operator=(const Sut &) = delete;

  const assay_kernel &kernel() const { return kernel_; }
  Family family() const { return static_cast<Family>(kernel_.family); }
  bool can_split() const { return kernel_.arithmetic.max_splits > 1; }

  /// Whether the kernel's block-FMA is bit for bit the model of oracle/bounds/block_fma.h, so that
  /// T2 applies. A declaration holds upper limits only, so this is said beside it.
  bool replays_scores() const { return replays_scores_; }
  void set_replays_scores(bool on) { replays_scores_ = on; }

  /// What the kernel is not asked. A call that the assumptions exclude counts as one that it does
  /// not support.
  const Assumed &assumed() const { return assumed_; }
  void assume(const Assumed &assumed) { assumed_ = assumed; }

  /// Runs the kernel on the memory of `t` with the schedule and poison of its case. On ASSAY_OK the
  /// outputs of `t` are the kernel's. Inputs, dead bytes of outputs, and guard bands that changed
  /// are violations. Deterministic for a deterministic kernel.
  RunResult run(Tensors &t);
  /// Runs `t`, whose buffers as they are now are `before`.
  RunResult run(Tensors &t, const std::vector<Buffer> &before);
  /// Runs a copy of `t`'s buffers and writes every buffer back, inputs included. Reports violations
  /// that the target itself sees, without a comparison of the buffers.
  virtual RunResult execute(Tensors &t) = 0;

  /// The order of keys that the kernel declares for this call; null where it declares none. Asked
  /// once while calls have the same case, lengths and page tables. Throws oracle::OrderError.
  std::shared_ptr<const oracle::KeyOrder> key_order(const Tensors &t);

  /// The oracle on the GPU that the kernel runs on; null: the host's alone.
  virtual DeviceOracle *device_oracle() { return nullptr; }

  /// Ends whatever the kernel may remember, where it runs in a process of its own.
  virtual void forget_earlier_calls() {}

  /// The next call is the first one of a new process, if the kernel runs in one of its own: false
  /// if not. What `assay replay` will see.
  virtual bool start_anew() { return false; }

  /// Calls `run`, which makes the same calls each time, on one order of their operations after the
  /// other (kernels/simt/explorer.h), `most` of them at most, until it returns false. Nothing where
  /// no executor runs the kernel in this process.
  virtual std::optional<simt::Explored> explore(uint64_t /*most*/,
                                                simt::FunctionRef<bool()> /*run*/) {
    return std::nullopt;
  }
  /// Seconds of the kernel's own processes: processor time, and time that they hung.
  virtual double seconds_elsewhere() const { return 0; }

  /// Calls that assay.h forbids, each that of `t` with one mistake (call/bad_calls.h): what is
  /// wrong in those that the kernel does not refuse. Nothing is run that it says it would refuse
  /// to.
  virtual std::vector<WrongAnswer> accepted_bad_calls(const Tensors &t);

  /// The wrong answers of the kernel about calls at the limits of assay.h and beyond
  /// (call/limit_calls.h). It is asked, and runs nothing.
  virtual std::vector<WrongAnswer> misjudged_limits(const Tensors &t);

  /// Classes of the calls that ran since the last question: of cases as a property made them.
  std::set<std::string> take_classes() { return std::exchange(classes_, {}); }
  /// The same of calls that the kernel did not support.
  std::set<std::string> take_refused_classes() { return std::exchange(refused_classes_, {}); }
  /// What the calls since the last question did, summed: bytes loaded, barriers, ... Empty where
  /// the target counts nothing.
  std::map<std::string, uint64_t> take_counters() { return std::exchange(counters_, {}); }

protected:
  /// Whether this run is to be planned by a call of its own: then an early start has a plan to
  /// read. One early start in four has none: the call plans, and must not start before itself.
  bool plans_apart(const Tensors &t) const {
    const bool early = t.problem.enable_pdl && t.problem.schedule.seed % 4 != 3;
    return kernel_.plan != nullptr && (early || is_second_call(t) || plans_for_others(t));
  }
  /// Whether, behind the plan of this run, another plan is made, for requests of a key each: what a
  /// kernel keeps of a plan belongs to that plan.
  bool plans_for_others(const Tensors &t) const {
    return kernel_.plan != nullptr && t.problem.family == Family::kPaged &&
           t.problem.schedule.seed % 8 == 2;
  }
  /// Lengths of those requests: of none that has no keys.
  static std::vector<int32_t> other_lengths(const Tensors &t) {
    std::vector<int32_t> lengths;
    for (int len : t.problem.seq_lens)
      lengths.push_back(len > 0 ? 1 : 0);
    lengths.resize(std::max<size_t>(lengths.size(), 1));
    return lengths;
  }
  /// Whether a run is the second call with its workspace and plan, behind one with other queries.
  bool is_second_call(const Tensors &t) const {
    return is_attention(t.problem) && t.problem.schedule.seed % 8 == 1;
  }

  virtual std::shared_ptr<const oracle::KeyOrder> ask_for_key_order(const Tensors &t);

private:
  const assay_kernel &kernel_;
  bool replays_scores_ = false;
  Assumed assumed_;
  std::set<std::string> classes_, refused_classes_;
  std::map<std::string, uint64_t> counters_;

  /// The last call whose key order was asked for: what a kernel may make it from.
  struct AskedCall {
    Problem problem;
    std::vector<std::vector<std::byte>> tables;
    friend bool operator==(const AskedCall &, const AskedCall &) = default;
  };
  std::optional<AskedCall> asked_;
  std::shared_ptr<const oracle::KeyOrder> order_; ///< order of asked_
};

/// Runs kernels whose pointers are plain host memory and that need no stream: C++ references.
std::unique_ptr<Sut> make_host_sut(const assay_kernel &kernel);
/// Runs kernels on the CPU executor; every buffer is registered with it. `holds`: of the schedule
/// of every run, beside that of the case (kernels/simt/schedule.h).
std::unique_ptr<Sut> make_simt_sut(const assay_kernel &kernel, std::vector<uint32_t> holds = {});
/// Runs kernels on the current CUDA device. Null when this build or this machine has none.
std::unique_ptr<Sut> make_cuda_sut(const assay_kernel &kernel);
/// By the kernel's own target.
std::unique_ptr<Sut> make_sut(const assay_kernel &kernel);
/// Makes a Sut in a process of its own (process_sut.cpp): what the kernel does to that process is
/// a hazard of the case. On cuda, whose driver does not survive a fork, nothing else in this
/// process may use the device. Null when the target cannot run. With a forker, which must outlive
/// it, its processes have the memory of the harness of when that was started.
std::unique_ptr<Sut> make_process_sut(const assay_kernel &kernel,
                                      std::chrono::milliseconds patience = kFirstPatience,
                                      Forker *forker = nullptr);
/// What makes processes for kernels that are in memory now. Null where there is no process for it.
std::unique_ptr<Forker> start_forker();
/// AddressSanitizer's allocator does not survive a fork beside another thread.
bool processes_need_one_thread();
/// Empty when the target can run here, else the reason. Leaves this process without a driver.
std::string cuda_unavailable();
inline std::string target_unavailable(assay_target target) {
  return target == ASSAY_TARGET_CUDA ? cuda_unavailable() : "";
}

/// The kernel's message on its last refusal; a plugin may give none, also by a null pointer.
inline std::string last_message(const assay_kernel &kernel) {
  const char *message = kernel.last_error != nullptr ? kernel.last_error() : nullptr;
  return message != nullptr ? message : "";
}

/// Where a workspace or a plan begins, behind a multiple of 256 bytes.
inline size_t scratch_offset(const Tensors &t, const char *name) {
  return base_offset(t.problem, name, 16);
}

/// Calls `body(scratch bytes)` after asking the kernel whether and with how much scratch it can
/// run; fills status and message when it cannot.
template <class Body>
bool admitted(const assay_kernel &kernel, const void *params, RunResult &result, Body body) {
  auto refuse = [&](assay_status status) {
    result.status = status;
    result.message = last_message(kernel);
    return false;
  };
  uint64_t bytes = 0;
  if (kernel.workspace_size != nullptr)
    if (assay_status status = kernel.workspace_size(params, &bytes)) return refuse(status);
  body(bytes);
  if (assay_status status = kernel.supports(params)) return refuse(status);
  return true;
}

} // namespace assay
