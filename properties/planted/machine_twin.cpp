// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "properties/planted/machine.h"
#include "properties/planted/values.h"

namespace assay::planted {
namespace {

std::vector<oracle::RowHead> open_of(oracle::TierReport report) { return std::move(report.open); }

class Twin final : public Machine {
public:
  assay_target target() const override { return ASSAY_TARGET_SIMT; }
  void *allocate(size_t bytes) override {
    constexpr size_t kAlignment = 256;
    blocks_.emplace_back(bytes + kAlignment);
    void *at = blocks_.back().data();
    size_t room = blocks_.back().size();
    return std::align(kAlignment, bytes, at, room);
  }
  void copy(void *to, const void *from, size_t bytes) override { std::memmove(to, from, bytes); }
  void fill_elements(void *to, size_t count, bool fp8, uint64_t seed) override {
    for (size_t i = 0; i < count; ++i) {
      const uint16_t bits = element_bits(seed + i, fp8);
      std::memcpy(static_cast<std::byte *>(to) + i * (fp8 ? 1 : 2), &bits, fp8 ? 1 : 2);
    }
  }
  void finish() override {}
  oracle::Memory memory() const override { return {}; }

  std::vector<oracle::RowHead> open_of_first(const oracle::AttentionRows &rows,
                                             const oracle::CallOutputs &outputs,
                                             const oracle::KernelModel &model) override {
    return open_of(oracle::judge_tiers_here(rows, outputs, without_order(model)));
  }
  std::vector<oracle::RowHead> open_of_every(const oracle::AttentionRows &rows,
                                             const oracle::CallOutputs &outputs,
                                             const oracle::KernelModel &model) override {
    return open_of(oracle::judge_tiers_here(rows, outputs, model));
  }
  std::vector<oracle::RowHead> open_of_merges(const oracle::MergeRows &rows,
                                              const oracle::CallOutputs &outputs,
                                              const oracle::KernelModel &model) override {
    return open_of(oracle::judge_merges_here(rows, outputs, model));
  }
  std::vector<oracle::BulkElement> exact(const oracle::AttentionRows &rows,
                                         const oracle::CallOutputs &outputs,
                                         const oracle::KernelModel &model) override {
    std::vector<oracle::BulkElement> first;
    for (const auto &tiers :
         oracle::judge_tiers_here(rows, outputs, without_order(model), true).elements)
      first.push_back(tiers[0]);
    return first;
  }

private:
  static oracle::KernelModel without_order(const oracle::KernelModel &model) {
    return {.arithmetic = model.arithmetic};
  }
  std::vector<std::vector<std::byte>> blocks_;
};

} // namespace

std::unique_ptr<Machine> make_machine() { return std::make_unique<Twin>(); }

} // namespace assay::planted
