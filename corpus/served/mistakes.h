// SPDX-License-Identifier: Apache-2.0
// Kinds of mistakes, each in one element or one row of a served call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "corpus/served/served_call.h"

namespace assay::served {

inline constexpr int kAnyElement = -2, kLse = -1;

/// What is wrong: a row of a head, or one element of it; and where two rows are, the other.
struct Wrong {
  int element = kAnyElement;
  std::vector<oracle::RowHead> others = {};
};
struct Mistake {
  std::string name;
  std::function<Wrong(ServedCall &)> plant;
};

/// What the row's head gives when it is given the call that `change` makes of the right one.
inline Mistake seen(const std::string &name, std::function<void(ServedCall &, Call &)> change) {
  return {name, [change](ServedCall &call) {
            Call wrong = call.right();
            change(call, wrong);
            call.plant(wrong);
            return Wrong{};
          }};
}

/// What belongs to a head, a window or a token, and is taken from another.
std::vector<Mistake> mistakes_of_fp8();
std::vector<Mistake> mistakes_of_features();
std::vector<Mistake> mistakes_of_tokens();
/// Keys and pages that one head takes for others.
std::vector<Mistake> mistakes_of_keys();
/// In a pool with pages to lose.
std::vector<Mistake> mistakes_of_offsets();
/// Rows and elements that are wrong where they are written.
std::vector<Mistake> mistakes_of_outputs();
/// Parts of a row that are computed apart and merged: splits, and nodes of a tree.
std::vector<Mistake> mistakes_of_splits();
std::vector<Mistake> mistakes_of_trees();

} // namespace assay::served
