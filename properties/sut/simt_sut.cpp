// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <optional>
#include <span>

#include "kernels/simt/stream.h"
#include "properties/call/params.h"
#include "properties/sut/fault.h"
#include "properties/sut/guard.h"
#include "properties/sut/sut.h"

namespace assay {
namespace {

simt::Schedule to_schedule(const ScheduleSpec &s, std::span<const uint32_t> holds) {
  return {static_cast<simt::Order>(s.order), static_cast<simt::CopyCompletion>(s.copies), s.seed,
          holds};
}

class SimtSut final : public Sut {
public:
  SimtSut(const assay_kernel &kernel, std::vector<uint32_t> holds)
      : Sut(kernel), holds_(std::move(holds)) {}

  std::optional<simt::Explored> explore(uint64_t most, simt::FunctionRef<bool()> run) override {
    return simt::explore(stream_.emplace(), most, run);
  }

private:
  RunResult execute(Tensors &t) override {
    simt::Stream &stream = stream_.emplace();
    stream.schedule = to_schedule(t.problem.schedule, holds_);
    for (const FieldNumber &n : t.numbers)
      stream.numbers.rows.push_back({n.a, n.b, n.m, n.u});
    std::vector<void *> addresses = register_buffers(stream.memory, t);
    AbiParams params = make_params(t, addresses, ASSAY_TARGET_SIMT, &stream);
    RunResult result;
    bool ok = admitted(kernel(), params.get(), result, [&](uint64_t bytes) {
      if (bytes == 0) return;
      void *workspace = scratch(stream.memory, t, bytes, "workspace");
      fill_poison(static_cast<std::byte *>(workspace), bytes, t.problem);
      params.set_workspace(workspace, bytes);
    });
    if (!ok) return result;
    if (plans_apart(t)) result.status = plan(stream.memory, t, params);
    if (result.status == ASSAY_OK && is_second_call(t))
      result.status = first_call(stream.memory, t, params, addresses[t.q.buffer]);
    set_kernel_in_front(stream.memory, t, addresses);
    if (result.status == ASSAY_OK) result.status = kernel().run(params.get());
    if (result.status != ASSAY_OK) result.message = last_message(kernel());
    stream.memory.check_red_zones(stream.hazards);
    for (const simt::Hazard &hazard : stream.hazards)
      result.hazards.push_back({.kind = Hazard::Kind::kExecutor,
                                .name = simt::to_string(hazard.kind),
                                .file = simt::file_of(hazard.site),
                                .line = static_cast<int>(hazard.site.line),
                                .buffer = hazard.buffer,
                                .text = hazard.message});
    if (result.status == ASSAY_HAZARD && result.hazards.empty())
      result.hazards.push_back({.kind = Hazard::Kind::kUnsaid,
                                .name = result.message,
                                .text = "hazard without a report: " + result.message});
    for (size_t i = 0; i < addresses.size(); ++i)
      std::memcpy(t.buffers[i].bytes.data(), addresses[i], t.buffers[i].bytes.size());
    if (!t.numbers.empty()) {
      t.numbers.clear();
      for (const simt::WideNumber &n : stream.numbers.rows)
        t.numbers.push_back({n.a, n.b, n.m, n.u});
    }
    fill_counters(stream.counters, result.counters);
    return result;
  }

  /// A call with queries of zeros, whose outputs and workspace the call in question finds.
  assay_status first_call(simt::Memory &memory, const Tensors &t, AbiParams &params,
                          void *queries) {
    const auto &q = t.buffers[t.q.buffer].bytes;
    std::memset(queries, 0, q.size());
    memory.begin_launch(); // behind the planner's
    const assay_status status = kernel().run(params.get());
    std::memcpy(queries, q.data(), q.size());
    return status;
  }

  /// What a call may start before: nothing of it, or as much of it as enable_pdl allows.
  static void set_kernel_in_front(simt::Memory &memory, const Tensors &t,
                                  const std::vector<void *> &addresses) {
    if (!t.problem.enable_pdl) return memory.mark_all_late();
    memory.begin_launch(); // behind the planner's
    for (const ByteRange &late : late_bytes(t))
      memory.mark_late(static_cast<std::byte *>(addresses[late.buffer]) + late.offset, late.bytes);
  }

  static void *scratch(simt::Memory &memory, const Tensors &t, uint64_t bytes, const char *name) {
    void *const at = memory.allocate(bytes, simt::Access::kReadWrite, simt::InitState::kUndefined,
                                     name, 256, scratch_offset(t, name));
    note_buffer_near_faults(at, bytes, name);
    return at;
  }

  assay_status plan(simt::Memory &memory, const Tensors &t, AbiParams &params) {
    uint64_t bytes = 0;
    if (assay_status status = kernel().plan_size(params.get(), &bytes)) return status;
    params.set_plan(scratch(memory, t, bytes, "plan"), bytes);
    const assay_status status = kernel().plan(params.get());
    return status == ASSAY_OK && plans_for_others(t) ? plan_for_others(memory, t, params) : status;
  }

  /// A plan that the run does not use.
  assay_status plan_for_others(simt::Memory &memory, const Tensors &t, const AbiParams &own) {
    AbiParams params;
    params.family = own.family;
    params.paged = own.paged;
    const std::vector<int32_t> lengths = other_lengths(t);
    const size_t bytes = lengths.size() * sizeof lengths[0];
    void *others = memory.allocate(bytes, simt::Access::kReadOnly, simt::InitState::kDefined,
                                   "seq_lens of another plan");
    std::memcpy(others, lengths.data(), bytes);
    params.paged.kv.seq_lens = static_cast<const int32_t *>(others);
    params.set_plan(scratch(memory, t, params.paged.plan_bytes, "another plan"),
                    params.paged.plan_bytes);
    return kernel().plan(params.get());
  }

  static std::vector<void *> register_buffers(simt::Memory &memory, const Tensors &t) {
    std::vector<void *> addresses;
    forget_buffers_near_faults();
    for (size_t i = 0; i < t.buffers.size(); ++i) {
      const Buffer &b = t.buffers[i];
      // An output that is not also an input (in place) must not be read before it is written.
      bool fresh = b.output && !is_input(t, static_cast<int>(i));
      addresses.push_back(memory.allocate(
          b.bytes.size(), b.output ? simt::Access::kReadWrite : simt::Access::kReadOnly,
          fresh ? simt::InitState::kUndefined : simt::InitState::kDefined, b.name, 256, b.offset));
      std::memcpy(addresses.back(), b.bytes.data(), b.bytes.size());
      note_buffer_near_faults(addresses.back(), b.bytes.size(), b.name);
    }
    for (const CacheView &c : t.caches)
      forbid_dead_entries(memory, t, c, addresses[c.table]);
    return addresses;
  }

  static bool is_input(const Tensors &t, int buffer) {
    for (int side = 0; side < 2; ++side)
      if (t.in_o[side].buffer == buffer || t.in_lse[side].buffer == buffer) return true;
    return false;
  }

  /// Page-table entries past the live pages are never read, not even to be ignored.
  static void forbid_dead_entries(simt::Memory &memory, const Tensors &t, const CacheView &c,
                                  void *table) {
    const size_t entries = t.buffers[c.table].bytes.size() / 4;
    std::vector<bool> live(entries);
    for (int row = 0; row < c.rows; ++row)
      for (int64_t at = c.list_at(row); at < static_cast<int64_t>(entries); at += c.table_head) {
        std::fill_n(live.begin() + at, c.physical[static_cast<size_t>(row)].size(), true);
        if (c.table_head == 0) break;
      }
    for (size_t i = 0; i < entries; ++i)
      if (!live[i]) memory.mark_undefined(static_cast<std::byte *>(table) + 4 * i, 4);
  }

  static uint64_t shuffles(const simt::Counters &from) {
    using enum simt::Collective;
    return from.collective(kShflXor) + from.collective(kShflIdx) + from.collective(kShflUp) +
           from.collective(kShflDown);
  }

  static void fill_counters(const simt::Counters &from, std::map<std::string, uint64_t> &to) {
    to["launches"] = from.launches;
    to["blocks"] = from.blocks;
    to["global_load_bytes"] = from.global_load_bytes + from.async_copy_bytes;
    to["global_store_bytes"] = from.global_store_bytes;
    to["global_load_requests"] = from.global_load_requests + from.async_copies;
    to["shared_bytes"] = from.shared_load_bytes + from.shared_store_bytes;
    to["atomics"] = from.atomics;
    to["mma"] = from.collective(simt::Collective::kMma);
    to["wgmma"] = from.collective(simt::Collective::kWgmma);
    to["shuffles"] = shuffles(from);
    to["block_barriers"] = from.block_barriers + from.named_barriers;
    to["mbarrier_phases"] = from.mbarrier_phases;
  }

  std::vector<uint32_t> holds_;
  /// The stream of the latest run. An exploration knows it by its address.
  std::optional<simt::Stream> stream_;
};

} // namespace

std::unique_ptr<Sut> make_simt_sut(const assay_kernel &kernel, std::vector<uint32_t> holds) {
  return std::make_unique<SimtSut>(kernel, std::move(holds));
}

} // namespace assay
