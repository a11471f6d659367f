// SPDX-License-Identifier: Apache-2.0
// A kernel in a process of its own. Nothing it does there can end the run or pass for an answer: a
// process that ends, hangs or closes its channel is a hazard of the case that was running, and the
// next case gets a new process. The harness judges its own copy of the outputs, taken when the call
// has returned; what it expects never enters the process.
#include <sys/resource.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>

#include "kernels/simt/asan.h"
#include "oracle/exact/tile_order.h"
#include "properties/sut/child.h"
#include "properties/sut/device_oracle.h"
#include "properties/sut/fault.h"
#include "properties/sut/forker.h"
#include "properties/sut/shared_memory.h"
#include "properties/sut/shared_note.h"
#include "properties/sut/sut.h"
#include "properties/sut/wire.h"

namespace assay {
namespace {

/// A driver maps far more memory than it uses.
void limit_memory([[maybe_unused]] assay_target target) {
#if !ASSAY_ASAN
  const rlimit memory{kMaxChildMemory, kMaxChildMemory};
  if (target == ASSAY_TARGET_SIMT) setrlimit(RLIMIT_AS, &memory);
#endif
}

/// What the kernel throws, in words.
template <class Body>
std::string thrown_by(Body body) {
  try {
    body();
    return "";
  } catch (const std::exception &e) {
    return *e.what() != 0 ? e.what() : "something";
  } catch (...) {
    return "something";
  }
}

Hazard threw(const std::string &what) {
  return {.kind = Hazard::Kind::kThrown, .name = what, .text = "the kernel threw: " + what};
}

/// The answer of a kernel that ended while it was asked about calls.
WrongAnswer no_answer(const Hazard &hazard) {
  WrongAnswer answer;
  answer.text = "a call that it is only asked about: " + hazard.text;
  answer.ended.push_back(hazard);
  return answer;
}

/// The harness compares what is then in the memory: nothing here does.
wire::Message run(Sut &sut, Tensors &t, std::byte *memory) {
  RunResult result;
  const std::string thrown = thrown_by([&] { result = sut.execute(t); });
  if (!thrown.empty()) result.hazards.push_back(threw(thrown));
  put_buffers(t, CallLayout(t), memory);
  return wire::pack_reply(result, t);
}

wire::Message key_order(Sut &sut, const Tensors &t) {
  wire::KeyOrderAnswer answer;
  answer.error = thrown_by([&] {
    try {
      answer.order = *sut.key_order(t);
    } catch (const oracle::OrderError &e) {
      answer.kind = e.kind;
      throw;
    }
  });
  return wire::pack_key_order(answer);
}

/// A member that only asks about calls.
using AskCalls = std::vector<WrongAnswer> (Sut::*)(const Tensors &);

wire::Message wrong_calls(Sut &sut, AskCalls ask, const Tensors &t) {
  std::vector<WrongAnswer> wrong;
  const std::string thrown = thrown_by([&] { wrong = (sut.*ask)(t); });
  if (!thrown.empty()) wrong.push_back(no_answer(threw(thrown)));
  return wire::pack_answers(wrong);
}

wire::Message answer(Sut &sut, SharedMemory &shared, wire::Request request) {
  Tensors &t = request.tensors;
  std::byte *memory = shared.see(request.shared_bytes);
  RunResult nothing_yet;
  take_buffers(t, CallLayout(t), memory, nothing_yet);
  switch (request.question) {
  case wire::Question::kRun:
    return run(sut, t, memory);
  case wire::Question::kKeyOrder:
    return key_order(sut, t);
  case wire::Question::kBadCalls:
    return wrong_calls(sut, &Sut::accepted_bad_calls, t);
  case wire::Question::kLimits:
    return wrong_calls(sut, &Sut::misjudged_limits, t);
  }
  return {};
}

/// Makes the Sut of the kernel's target in a process that has none yet. The first message has what
/// went wrong, or is empty: no case is to blame for it.
std::unique_ptr<Sut> set_up(const assay_kernel &kernel, Channel &channel) {
  std::unique_ptr<Sut> sut;
  const std::string failure = thrown_by([&] { sut = make_sut(kernel); });
  channel.send(std::as_bytes(std::span(failure)), std::nullopt);
  if (sut == nullptr) _exit(0);
  return sut;
}

/// What the process does until its channel closes: one request, one reply.
[[noreturn]] void serve(const assay_kernel &kernel, SharedMemory &shared, FaultNote *note, int fd) {
  Channel channel(fd);
  enter_child();
  limit_memory(kernel.target);
  // A driver, and AddressSanitizer, have handlers of their own.
  if (note != nullptr && kernel.target == ASSAY_TARGET_SIMT && !ASSAY_ASAN) note_faults(note);
  const std::unique_ptr<Sut> sut = set_up(kernel, channel);
  for (wire::Message message; channel.receive(message, std::nullopt, wire::kMaxMessage);) {
    const wire::Message reply = answer(*sut, shared, wire::unpack_request(message));
    if (!channel.send(reply, std::nullopt)) break;
  }
  // Nobody sees this where the harness has closed its end.
  _exit(kChannelGone);
}

/// The same in a process that a Forker has made.
[[noreturn]] void serve_request(const ForkRequest &request) {
  SharedMemory shared(request.memory);
  SharedNote note(request.note);
  serve(request.kernel, shared, note.map(), request.channel);
}

/// Kernels that did not return once: every thread and property would wait as long again.
std::mutex hung_mutex;
std::set<std::string> hung;

bool has_hung(const assay_kernel &kernel) {
  const std::lock_guard lock(hung_mutex);
  return hung.count(kernel.name) > 0;
}
void note_hang(const assay_kernel &kernel) {
  const std::lock_guard lock(hung_mutex);
  hung.insert(kernel.name);
}

class ProcessSut final : public Sut {
public:
  ProcessSut(const assay_kernel &kernel, std::chrono::milliseconds patience, Forker *forker)
      : Sut(kernel), child_(patience), forker_(forker) {}

  DeviceOracle *device_oracle() override {
    if (kernel().target != ASSAY_TARGET_CUDA) return nullptr;
    if (!oracle_) oracle_.emplace(DeviceOracle::Where::kOwnProcess);
    return &*oracle_;
  }

  void forget_earlier_calls() override { child_.stop(); }
  bool start_anew() override {
    child_.stop();
    return true;
  }
  double seconds_elsewhere() const override { return child_.spent(); }

  std::vector<WrongAnswer> accepted_bad_calls(const Tensors &t) override {
    return wrong_calls_of(wire::Question::kBadCalls, t);
  }
  std::vector<WrongAnswer> misjudged_limits(const Tensors &t) override {
    return wrong_calls_of(wire::Question::kLimits, t);
  }

private:
  std::vector<WrongAnswer> wrong_calls_of(wire::Question question, const Tensors &t) {
    std::vector<WrongAnswer> wrong;
    wire::Message reply;
    auto failure = ask(question, t, reply);
    if (!failure && !wire::unpack_answers(reply, wrong)) failure = unsound();
    if (!failure) return wrong;
    child_.stop();
    return {no_answer(*failure)};
  }

  RunResult execute(Tensors &t) override {
    RunResult result;
    const auto failure = run_apart(t, result);
    if (failure) result.hazards.push_back(*failure);
    // A device that has faulted serves its process no more.
    const bool sick = kernel().target == ASSAY_TARGET_CUDA && !result.hazards.empty();
    if (failure || sick) child_.stop();
    return result;
  }

  std::shared_ptr<const oracle::KeyOrder> ask_for_key_order(const Tensors &t) override {
    wire::KeyOrderAnswer answer;
    wire::Message reply;
    auto failure = ask(wire::Question::kKeyOrder, t, reply);
    if (!failure && !wire::unpack_key_order(reply, t.problem.batch, answer)) failure = unsound();
    if (failure) {
      child_.stop();
      throw oracle::OrderError(oracle::OrderError::Kind::kEnded,
                               "declared key order: asked for it, " + failure->text);
    }
    if (!answer.error.empty()) throw oracle::OrderError(answer.kind, answer.error);
    return std::make_shared<oracle::KeyOrder>(std::move(answer.order));
  }

  /// Why the case did not end as it should.
  std::optional<Hazard> run_apart(Tensors &t, RunResult &result) {
    wire::Message reply;
    if (auto failure = ask(wire::Question::kRun, t, reply)) return failure;
    if (!wire::unpack_reply(reply, result, t)) return unsound();
    take_buffers(t, CallLayout(t), shared_.room(0), result);
    return std::nullopt;
  }

  /// Why there is no reply.
  std::optional<Hazard> ask(wire::Question question, const Tensors &t, wire::Message &reply) {
    const CallLayout layout(t);
    put_buffers(t, layout, shared_.room(layout.bytes));
    if (!child_.started()) start();
    const wire::Message request = wire::pack_request(question, shared_.size(), t);
    if (has_hung(kernel())) child_.lose_patience();
    const Deadline until = child_.deadline();
    const bool replied = child_.channel().send(request, until) &&
                         child_.channel().receive(reply, until, wire::kMaxMessage);
    if (replied) return std::nullopt;
    Hazard failure = child_.failure(until);
    if (failure.kind == Hazard::Kind::kHung) note_hang(kernel());
    if (failure.kind == Hazard::Kind::kSignal) failure.text += note_.text();
    return failure;
  }

  void start() {
    note_.clear();
    const auto elsewhere = [this](int fd) {
      return forker_ ? forker_->fork({kernel(), fd, shared_.fd(), note_.fd()}) : pid_t{-1};
    };
    child_.start([this](int fd) { serve(kernel(), shared_, note_.get(), fd); }, elsewhere);
    const Deadline until = child_.deadline();
    wire::Message said;
    const std::string failure =
        child_.channel().receive(said, until, wire::kMaxMessage)
            ? std::string(reinterpret_cast<const char *>(said.data()), said.size())
            : child_.failure(until).text;
    if (failure.empty()) return;
    child_.stop();
    throw std::runtime_error("no process for a kernel: " + failure);
  }

  static Hazard unsound() {
    return {.kind = Hazard::Kind::kNoReply, .text = "the kernel's process sent no sound reply"};
  }
  SharedMemory shared_;
  SharedNote note_;
  Child child_;
  Forker *forker_;
  std::optional<DeviceOracle> oracle_;
};

} // namespace

bool processes_need_one_thread() { return ASSAY_ASAN != 0; }

std::unique_ptr<Forker> start_forker() { return Forker::start(serve_request); }

std::unique_ptr<Sut> make_process_sut(const assay_kernel &kernel,
                                      std::chrono::milliseconds patience, Forker *forker) {
  // Asked here: a process that is being started cannot start another one to ask.
  if (!target_unavailable(kernel.target).empty()) return nullptr;
  return std::make_unique<ProcessSut>(kernel, patience, forker);
}

} // namespace assay
