// SPDX-License-Identifier: Apache-2.0
// Parts of a row that are computed apart and merged: splits, and nodes of a tree.
#pragma once

#include "properties/planted/mistake.h"

namespace assay::planted {

std::vector<Mistake> mistakes_of_splits();
std::vector<Mistake> mistakes_of_trees();

} // namespace assay::planted
