// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "properties/case/envelope.h"
#include "properties/case/problem.h"

namespace assay {

/// How large the sizes of judged draws were: of each field the largest values, so that one lucky
/// draw does not speak for a run.
class ReachedSizes {
public:
  static constexpr size_t kDraws = 10;

  void add(const Problem &p);
  void merge(const ReachedSizes &other);
  /// The largest size that kDraws draws reached, by field; fields of fewer draws are left out.
  std::map<std::string, int> sizes() const;
  /// The largest size of any draw, by field.
  std::map<std::string, int> most() const;

private:
  void add(const std::string &field, int size);
  std::map<std::string, std::vector<int>> largest_; ///< descending, kDraws at most
};

/// Why no draw of a whole run has a larger size in a field: in the words of the kernel where it
/// refuses one, else what bounds the draw. `envelope` may be null.
std::string why_no_larger(Family family, const std::string &field, int reached,
                          const Envelope *envelope);

/// Sizes that serving has, that the kernel takes, and that the largest call which it was asked for
/// does not have: a sentence for each. Such a run proves nothing about them.
std::vector<std::string> never_asked(Family family, const ReachedSizes &asked,
                                     const Envelope *envelope);

} // namespace assay
