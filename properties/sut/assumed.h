// SPDX-License-Identifier: Apache-2.0
// What the interface of a kernel excludes, and what is then neither drawn nor required.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "properties/call/tensors.h"

namespace assay {

struct Assumed {
  bool no_empty_requests = false; ///< every request of a call has a key
  bool finite_pool = false;       ///< what no request owns of the pool holds finite numbers
};

/// One of them by its word: `assay judge-callable` has the same words.
struct Assumption {
  const char *word;
  bool Assumed::*flag;
};
std::span<const Assumption> assumptions();

/// Those that are assumed.
std::vector<std::string> words_of(const Assumed &assumed);

/// Whether a request of a case of attention has no keys.
bool has_empty_request(const Problem &p);

/// Numbers take the place of NaN and infinity in all bytes of the pools that no request owns.
void make_pools_finite(Tensors &t);

} // namespace assay
