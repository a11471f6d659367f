// SPDX-License-Identifier: Apache-2.0
// Kinds of mistakes, each in one element or one row of a served call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "properties/tests/planted/served_call.h"

namespace assay::planted {

constexpr int kAnyElement = -2, kLse = -1;

/// What is wrong: a row of a head, or one element of it; and where two rows are, the other.
struct Wrong {
  int element = kAnyElement;
  std::vector<oracle::RowHead> others = {};
};
struct Mistake {
  std::string name;
  std::function<Wrong(ServedCall &)> plant;
};

std::vector<Mistake> mistakes_of_outputs();
std::vector<Mistake> mistakes_of_keys();
std::vector<Mistake> mistakes_of_splits();
std::vector<Mistake> mistakes_of_offsets();
std::vector<Mistake> mistakes_of_fp8();
std::vector<Mistake> mistakes_of_features();
std::vector<Mistake> mistakes_of_tokens();
std::vector<Mistake> mistakes_of_trees();

/// A row put together from parts of its keys, each exact: O of part i is that of `slot[i]`, and its
/// weight that of an LSE times `lse_factor[i]`.
void write_merged(ServedCall &call, const std::vector<int> &ends, const std::vector<int> &slot,
                  const std::vector<double> &lse_factor);
/// Where the parts of write_merged end: the middle key's split is the second of three.
std::vector<int> split_ends(const ServedCall &call);

} // namespace assay::planted
