// SPDX-License-Identifier: Apache-2.0
// A build without CUDA.
#include <stdexcept>

#include "oracle/device/merges.h"

namespace assay::oracle {

struct TierJudge::Device {};

TierJudge::TierJudge() = default;
TierJudge::~TierJudge() = default;

void *TierJudge::own_stream() { return nullptr; }

std::byte *TierJudge::upload(const std::byte *, size_t, void *) {
  throw std::logic_error("tiers: built without CUDA");
}

TierReport TierJudge::judge(const AttentionRows &, const CallOutputs &, const KernelModel &, void *,
                            const JudgeOptions &) {
  throw std::logic_error("tiers: built without CUDA");
}

struct MergeJudge::Device {};

MergeJudge::MergeJudge() = default;
MergeJudge::~MergeJudge() = default;

TierReport MergeJudge::judge(const MergeRows &, const CallOutputs &, const KernelModel &, void *,
                             bool) {
  throw std::logic_error("merges: built without CUDA");
}

} // namespace assay::oracle
