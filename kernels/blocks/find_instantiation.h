// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/blocks/paged_shape.h"
#include "kernels/host/find.h"

#include <cstddef>

namespace assay {

/// The one for a shape, by element types and head_dim.
template <class Instantiation, size_t kCount>
assay_status find_instantiation(const Instantiation (&table)[kCount], const PagedShape &s,
                                const Instantiation *&found) {
  for (const Instantiation &i : table) {
    if (i.dtype != s.dtype || i.kv_dtype != s.kv_dtype || i.head_dim != s.head_dim) continue;
    found = &i;
    return ASSAY_OK;
  }
  return no_instantiation(s.dtype, s.kv_dtype, s.head_dim);
}

} // namespace assay
