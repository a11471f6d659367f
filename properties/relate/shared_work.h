// SPDX-License-Identifier: Apache-2.0
// Which keys a kernel computes for several requests at once, as its order of keys tells.
#pragma once

#include <string>
#include <vector>

#include "properties/sut/sut.h"

namespace assay {

/// Keys that requests have in common, cut alike in each of them.
struct SharedKeys {
  std::vector<int> requests;
  int begin = 0, end = 0;
  std::vector<int> splits; ///< keys of each
};

/// What the order of keys has in common over the same pages, from the first keys down. None where
/// it is the same with pages that nobody shares: then the kernel does not look at them.
std::vector<SharedKeys> shared_work(const Tensors &t, Sut &sut);

/// Says so in lines of text; empty when nothing is shared.
std::string explain_shared_work(const Tensors &t, Sut &sut);

} // namespace assay
