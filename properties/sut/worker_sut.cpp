// SPDX-License-Identifier: Apache-2.0
// A kernel in a worker. Whatever it does to its process or to the channel is a hazard of the case
// that was running, and the next case gets a new process. What a case expects never enters it.
#include "properties/sut/worker_sut.h"

#include <nlohmann/json.hpp>

#include "properties/sut/worker_call.h"

namespace assay {
namespace {

/// Where asking goes wrong so often, running says why.
constexpr int kMaxAskedInVain = 3;

class WorkerSut final : public Sut {
public:
  WorkerSut(const assay_kernel &kernel, std::shared_ptr<WorkerPool> pool, int index, WorkerUse use)
      : Sut(kernel), pool_(std::move(pool)), index_(index), use_(use) {}
  ~WorkerSut() override {
    if (worker_) pool_->give_back(std::move(worker_));
  }

  bool start_anew() override {
    if (worker_) worker_->stop();
    return true;
  }
  double seconds_elsewhere() const override { return worker_ ? worker_->spent() : 0; }

private:
  RunResult execute(Tensors &t) override {
    RunResult result;
    if (use_ == WorkerUse::kAsk && in_vain_ >= kMaxAskedInVain) return result;
    if (worker_)
      pool_->restart(*worker_);
    else
      worker_ = pool_->take();
    const CallLayout layout(t);
    std::byte *memory = worker_->memory().room(layout.bytes);
    put_buffers(t, layout, memory);
    if (!call(t, layout, result)) {
      ++in_vain_;
      return result;
    }
    take_buffers(t, layout, memory, result);
    return result;
  }

  bool call(const Tensors &t, const CallLayout &layout, RunResult &result) {
    const nlohmann::json request = {{"run", ++id_},
                                    {"kernel", index_},
                                    {"ask", use_ == WorkerUse::kAsk},
                                    {"bytes", worker_->memory().size()},
                                    {"call", describe_call(t, layout)}};
    std::string reply;
    Hazard why;
    if (!worker_->ask(request.dump(), reply, why)) {
      result.hazards.push_back(why);
      return false;
    }
    if (read_reply(reply, id_, result)) return true;
    result.hazards.push_back(
        {.kind = Hazard::Kind::kNoReply, .text = "the worker sent no sound reply"});
    worker_->stop();
    return false;
  }

  std::shared_ptr<WorkerPool> pool_;
  int index_;
  WorkerUse use_;
  std::unique_ptr<Worker> worker_;
  uint64_t id_ = 0;
  int in_vain_ = 0;
};

} // namespace

std::unique_ptr<Sut> make_worker_sut(const assay_kernel &kernel, std::shared_ptr<WorkerPool> pool,
                                     int index, WorkerUse use) {
  return std::make_unique<WorkerSut>(kernel, std::move(pool), index, use);
}

} // namespace assay
