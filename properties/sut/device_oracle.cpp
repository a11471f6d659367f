// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/device_oracle.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace assay {
namespace {

/// A pointer into a buffer of `t`, or below it, as one from the begin of the shared memory.
class Relocated {
public:
  Relocated(const Tensors &t, const CallLayout &layout) : t_(t), layout_(layout) {}

  template <class T>
  T *operator()(T *at, int buffer) const {
    const auto i = static_cast<size_t>(buffer);
    const auto from = reinterpret_cast<uintptr_t>(t_.buffers[i].bytes.data());
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(at) - from + layout_.offsets[i]);
  }

private:
  const Tensors &t_;
  const CallLayout &layout_;
};

/// From the begin of the shared memory to where a copy of it lies.
template <class T>
T *moved(T *at, const std::byte *base) {
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(at) + reinterpret_cast<uintptr_t>(base));
}

} // namespace

/// What stays between calls.
class DeviceOracle::Judges {
public:
  explicit Judges(bool twin) : twin_(twin) {}

  JudgedReply answer(const std::byte *block, JudgedCall call) {
    JudgedReply reply;
    try {
      oracle::TierReport report = judge(block, call);
      reply.rows.resize(report.rows.size() * sizeof(oracle::TierRow));
      std::memcpy(reply.rows.data(), report.rows.data(), reply.rows.size());
      reply.budgets = std::move(report.budgets);
      reply.device_ms = report.device_ms;
    } catch (const std::invalid_argument &e) { // an order of keys that is none is one
      reply.error = e.what();
      reply.refused = true;
    } catch (const std::exception &e) {
      reply.error = *e.what() != 0 ? e.what() : "something was thrown";
    }
    return reply;
  }

private:
  oracle::TierReport judge(const std::byte *block, JudgedCall &call) {
    if (!twin_ && !device_) device_.emplace();
    if (device_) block = device_->upload(block, call.used_bytes, device_->own_stream());
    for (oracle::KeyPool &pool : call.rows.pools) {
      pool.k = moved(pool.k, block);
      pool.v = moved(pool.v, block);
    }
    call.rows.q = moved(call.rows.q, block);
    const oracle::CallOutputs outputs{moved(call.o, block),
                                      call.has_lse ? moved(call.lse, block) : nullptr};
    oracle::KernelModel model{.arithmetic = call.arithmetic, .replay_scores = call.replay_scores};
    if (call.has_order) model.order = std::make_shared<oracle::KeyOrder>(std::move(call.order));
    return device_ ? device_->judge(call.rows, outputs, model, device_->own_stream())
                   : oracle::judge_tiers_here(call.rows, outputs, model);
  }

  const bool twin_;
  std::optional<oracle::TierJudge> device_;
};

DeviceOracle::DeviceOracle(Where where) : where_(where) {
  if (where_ == Where::kThisProcess) judges_ = std::make_unique<Judges>(false);
}
DeviceOracle::~DeviceOracle() = default;

void DeviceOracle::start() {
  child_.start([this](int fd) {
    enter_child();
    Channel channel(fd);
    Judges judges(where_ == Where::kTwin);
    for (wire::Message message; channel.receive(message, std::nullopt, wire::kMaxMessage);) {
      JudgedCall call = wire::unpack_judged_call(message);
      const std::byte *block = shared_.see(call.shared_bytes);
      const JudgedReply reply = judges.answer(block, std::move(call));
      if (!channel.send(wire::pack_judged_reply(reply), std::nullopt)) break;
    }
    _exit(kChannelGone);
  });
}

JudgedReply DeviceOracle::ask_process(const JudgedCall &call) {
  if (!child_.started()) start();
  const Deadline until = child_.deadline();
  wire::Message message;
  JudgedReply reply;
  const bool replied = child_.channel().send(wire::pack_judged_call(call), until) &&
                       child_.channel().receive(message, until, wire::kMaxMessage) &&
                       wire::unpack_judged_reply(message, reply) &&
                       reply.rows.size() % sizeof(oracle::TierRow) == 0;
  if (replied) return reply;
  reply.refused = false;
  reply.error = child_.failure(until).text;
  return reply;
}

std::optional<JudgedReply> DeviceOracle::ask(JudgedCall call) {
  JudgedReply reply =
      judges_ != nullptr ? judges_->answer(shared_.room(0), std::move(call)) : ask_process(call);
  if (reply.error.empty()) return reply;
  if (reply.refused) return std::nullopt;
  child_.stop();
  throw std::runtime_error("the oracle on the GPU: " + reply.error);
}

std::optional<oracle::TierReport> DeviceOracle::judge(const Tensors &before, const Tensors &after,
                                                      const oracle::AttentionRows &rows,
                                                      const oracle::CallOutputs &outputs,
                                                      const oracle::KernelModel &model) {
  const bool lies = std::all_of(after.caches.begin(), after.caches.end(),
                                [](const CacheView &c) { return c.k >= 0 && c.v >= 0; });
  if (rows.pools.size() != after.caches.size() || !lies ||
      !oracle::tiers_refuse(rows, model).empty())
    return std::nullopt;
  const CallLayout layout(after);
  put_buffers(after, layout, shared_.room(layout.bytes));
  const Relocated of_input(before, layout), of_output(after, layout);
  JudgedCall call{.shared_bytes = shared_.size(),
                  .used_bytes = layout.bytes,
                  .rows = rows,
                  .o = of_output(outputs.o, after.o.buffer),
                  .has_lse = outputs.lse != nullptr,
                  .has_order = model.order != nullptr,
                  .replay_scores = model.replay_scores,
                  .arithmetic = model.arithmetic,
                  .order = {}};
  for (size_t i = 0; i < rows.pools.size(); ++i) {
    call.rows.pools[i].k = of_input(rows.pools[i].k, after.caches[i].k);
    call.rows.pools[i].v = of_input(rows.pools[i].v, after.caches[i].v);
  }
  call.rows.q = of_input(rows.q, after.q.buffer);
  if (call.has_lse) call.lse = of_output(outputs.lse, after.lse.buffer);
  if (call.has_order) call.order = *model.order;
  const std::optional<JudgedReply> reply = ask(std::move(call));
  if (!reply) return std::nullopt;
  std::vector<oracle::TierRow> pairs(reply->rows.size() / sizeof(oracle::TierRow));
  std::memcpy(pairs.data(), reply->rows.data(), reply->rows.size());
  oracle::TierReport report =
      oracle::report_of(rows.out, outputs.lse != nullptr, std::move(pairs), reply->budgets);
  report.device_ms = reply->device_ms;
  return report;
}

} // namespace assay
