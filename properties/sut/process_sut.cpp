// SPDX-License-Identifier: Apache-2.0
// A kernel in a process of its own. Nothing it does there can end the run or pass for an answer: a
// process that ends, hangs or closes its channel is a hazard of the case that was running, and the
// next case gets a new process. The harness judges its own copy of the outputs, taken when the call
// has returned; what it expects never enters the process.
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>

#include <fmt/format.h>

#include "kernels/simt/asan.h"
#include "properties/sut/child.h"
#include "properties/sut/sut.h"
#include "properties/sut/wire.h"

namespace assay {
namespace {

/// A reply is the memory of a case and a few lines.
constexpr uint64_t kMaxMessage = uint64_t{1} << 33;

void limit_memory() {
#if !ASSAY_ASAN
  const rlimit memory{kMaxChildMemory, kMaxChildMemory};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

/// What the process does until its channel closes: one request, one run, one reply.
[[noreturn]] void serve(Sut &sut, Channel &channel) {
  enter_child();
  limit_memory();
  for (wire::Message message; channel.receive(message, std::nullopt, kMaxMessage);) {
    Tensors t = wire::unpack_request(message);
    RunResult result;
    try {
      result = sut.run(t);
    } catch (const std::exception &e) {
      result.hazards.push_back(fmt::format("the kernel threw: {}", e.what()));
    } catch (...) {
      result.hazards.push_back("the kernel threw something");
    }
    if (!channel.send(wire::pack_reply(result, t), std::nullopt)) break;
  }
  _exit(0);
}

class ProcessSut final : public Sut {
public:
  explicit ProcessSut(std::unique_ptr<Sut> inner)
      : Sut(inner->kernel()), inner_(std::move(inner)) {}

private:
  RunResult execute(Tensors &t) override {
    if (!child_.started()) start();
    const Deadline until = child_.deadline();
    RunResult result;
    wire::Message reply;
    if (!child_.channel().send(wire::pack_request(t), until) ||
        !child_.channel().receive(reply, until, kMaxMessage))
      result.hazards.push_back(child_.failure(until));
    else if (!wire::unpack_reply(reply, result, t))
      result.hazards.push_back("the kernel's process sent no sound reply");
    else
      return result;
    child_.stop();
    return result;
  }

  void start() {
    child_.start([this](int fd) {
      Channel channel(fd);
      serve(*inner_, channel);
    });
  }

  std::unique_ptr<Sut> inner_;
  Child child_;
};

} // namespace

bool processes_need_one_thread() { return ASSAY_ASAN != 0; }

std::unique_ptr<Sut> make_process_sut(std::unique_ptr<Sut> inner) {
  return std::make_unique<ProcessSut>(std::move(inner));
}

} // namespace assay
