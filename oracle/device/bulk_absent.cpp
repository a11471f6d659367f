// SPDX-License-Identifier: Apache-2.0
// A build without CUDA.
#include <stdexcept>

#include "oracle/device/bulk.h"

namespace assay::oracle {

struct BulkJudge::Device {};

BulkJudge::BulkJudge() = default;
BulkJudge::~BulkJudge() = default;

std::string bulk_refuses(const AttentionRows &, const KernelModel &) {
  return "built without CUDA";
}

BulkReport BulkJudge::judge(const AttentionRows &, const CallOutputs &, const KernelModel &, void *,
                            std::vector<BulkElement> *) {
  throw std::logic_error("bulk judge: built without CUDA");
}

} // namespace assay::oracle
