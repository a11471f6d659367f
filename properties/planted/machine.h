// SPDX-License-Identifier: Apache-2.0
// Where planted calls lie, run and are judged: the GPU at production size, or its twin at small
// sizes, the executor and the GPU's text of every tier.
#pragma once

#include <memory>
#include <vector>

#include "oracle/tiers/merges.h"

namespace assay::planted {

class Machine {
public:
  virtual ~Machine() = default;
  virtual assay_target target() const = 0;
  /// Kept until the machine ends.
  virtual void *allocate(size_t bytes) = 0;
  /// Either side may be memory of the machine or of this process.
  virtual void copy(void *to, const void *from, size_t bytes) = 0;
  virtual void fill_elements(void *to, size_t count, bool fp8, uint64_t seed) = 0;
  virtual void finish() = 0;
  virtual oracle::Memory memory() const = 0;

  /// What is not certainly inside: by T0 and the LSE, and by every tier.
  virtual std::vector<oracle::RowHead> open_of_first(const oracle::AttentionRows &,
                                                     const oracle::CallOutputs &,
                                                     const oracle::KernelModel &) = 0;
  virtual std::vector<oracle::RowHead> open_of_every(const oracle::AttentionRows &,
                                                     const oracle::CallOutputs &,
                                                     const oracle::KernelModel &) = 0;
  virtual std::vector<oracle::RowHead> open_of_merges(const oracle::MergeRows &,
                                                      const oracle::CallOutputs &,
                                                      const oracle::KernelModel &) = 0;
  /// What T0 and the LSE hold every output against: [rows, heads, dims and the LSE].
  virtual std::vector<oracle::BulkElement> exact(const oracle::AttentionRows &,
                                                 const oracle::CallOutputs &,
                                                 const oracle::KernelModel &) = 0;
};

/// The machine of the program that this is linked into; null where it has none.
std::unique_ptr<Machine> make_machine();

} // namespace assay::planted
