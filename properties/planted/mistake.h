// SPDX-License-Identifier: Apache-2.0
// Kinds of mistakes, each in one element or one row of a served call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "properties/planted/served_call.h"

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

/// What the row's head gives when it is given the call that `change` makes of the right one.
Mistake seen(const std::string &name, std::function<void(ServedCall &, Call &)> change);

} // namespace assay::planted
