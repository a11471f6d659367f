// SPDX-License-Identifier: Apache-2.0
// The arrays that features of paged attention add to a call: built, and put into its parameters.
#pragma once

#include "properties/call/tensors.h"

namespace assay {

/// Adds those that the case has.
void add_feature_arrays(Tensors &t);

/// Sets the fields of `to` that point to them; `at(buffer)` is where a buffer of `t` lies.
template <class At>
void pass_feature_arrays(assay_paged_params &to, const Tensors &t, At at) {
  for (const FeatureArray &array : t.feature_arrays)
    array.pass(to, at(array.buffer));
}

} // namespace assay
