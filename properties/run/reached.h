// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

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

private:
  void add(const std::string &field, int size);
  std::map<std::string, std::vector<int>> largest_; ///< descending, kDraws at most
};

} // namespace assay
