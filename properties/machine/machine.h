// SPDX-License-Identifier: Apache-2.0
// Where calls of any size lie, run and are judged: a GPU, or its twin, the executor and the GPU's
// text of every tier, at small sizes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oracle/device/merges.h"
#include "properties/machine/cache_fill.h"

namespace assay {

class Machine {
public:
  virtual ~Machine() = default;
  virtual assay_target target() const = 0;
  virtual uint64_t free_bytes() const = 0;
  /// At a multiple of 256 bytes; kept until the machine ends.
  virtual void *allocate(size_t bytes) = 0;
  /// Either side may be memory of the machine or of this process.
  virtual void copy(void *to, const void *from, size_t bytes) = 0;
  /// By counted_values.h.
  virtual void fill_elements(void *to, size_t count, bool fp8, uint64_t seed) = 0;
  /// All elements of a cache; `owners` lie on the machine.
  virtual void fill_cache(const CacheFill &fill) = 0;
  /// Waits for all of the above and for kernels. Throws std::runtime_error where one failed.
  virtual void finish() = 0;
  virtual oracle::Memory memory() const = 0;

  /// Why calls of attention are not judged here; empty: they are.
  virtual std::string refuses(const oracle::AttentionRows &, const oracle::KernelModel &) const = 0;
  virtual oracle::TierReport judge(const oracle::AttentionRows &, const oracle::CallOutputs &,
                                   const oracle::KernelModel &,
                                   const oracle::JudgeOptions &options = {}) = 0;
  virtual oracle::TierReport judge_merges(const oracle::MergeRows &, const oracle::CallOutputs &,
                                          const oracle::KernelModel &) = 0;
};

std::unique_ptr<Machine> make_twin();
/// The current device; null where there is none, or the build has no CUDA.
std::unique_ptr<Machine> make_gpu();

} // namespace assay
