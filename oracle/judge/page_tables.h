// SPDX-License-Identifier: Apache-2.0
// Where the keys of each request lie.
#pragma once

#include <vector>

#include "oracle/judge/array_view.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** From page to page of a cache, in its elements and in its scales. */
struct PageStrides {
  int64_t elements, scales;
};

/** The page tables of all requests. Functions throw ArrayError. */
class PageTables {
public:
  PageTables(const assay_judge_attention_params &p, int64_t requests, int64_t pages, int64_t slots);

  /** The runs of a request with so many keys. */
  void append(int64_t request, int64_t keys, PageStrides k, PageStrides v,
              std::vector<KeyRun> &runs) const;

private:
  void check(const ArrayView &table, int64_t requests) const;
  int64_t page(const ArrayView &table, int64_t request, int64_t i) const;

  ArrayView table_, v_table_, indptr_;
  int64_t pages_, slots_;
};

} // namespace assay::oracle
