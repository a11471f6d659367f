// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>

#include "properties/machine/counted_values.h"
#include "properties/machine/machine.h"

namespace assay {
namespace {

class Twin final : public Machine {
public:
  assay_target target() const override { return ASSAY_TARGET_SIMT; }
  uint64_t free_bytes() const override { return uint64_t{1} << 30; }
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
  void fill_cache(const CacheFill &fill) override {
    for (int64_t i = 0; i < fill.elements(); ++i)
      store_bits(fill, i, fill.poison);
    for (int64_t page = 0; page < fill.pages; ++page)
      for (int token = 0; token < fill.page_size; ++token)
        for (int head = 0; head < fill.heads; ++head)
          fill_token(fill, page, token, head, 0, 1);
  }
  void finish() override {}
  oracle::Memory memory() const override { return {}; }

  std::string refuses(const oracle::AttentionRows &rows,
                      const oracle::KernelModel &model) const override {
    return oracle::tiers_refuse(rows, model);
  }
  oracle::TierReport judge(const oracle::AttentionRows &rows, const oracle::CallOutputs &outputs,
                           const oracle::KernelModel &model,
                           const oracle::JudgeOptions &options) override {
    return oracle::judge_tiers_here(rows, outputs, model, options);
  }
  oracle::TierReport judge_merges(const oracle::MergeRows &rows, const oracle::CallOutputs &outputs,
                                  const oracle::KernelModel &model) override {
    return oracle::judge_merges_here(rows, outputs, model);
  }

private:
  std::vector<std::vector<std::byte>> blocks_;
};

} // namespace

std::unique_ptr<Machine> make_twin() { return std::make_unique<Twin>(); }

} // namespace assay
