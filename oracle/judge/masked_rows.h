// SPDX-License-Identifier: Apache-2.0
// Rows whose keys a mask chooses: each has a list of its own, of the keys that it sees.
#pragma once

#include <vector>

#include "oracle/judge/array_view.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** A list of keys more. */
void append_list(AttentionRows &rows, const std::vector<KeyRun> &runs);

/** The mask of a call, request after request. Throws ArrayError. */
class MaskedRows {
public:
  /// Strides between keys of a page.
  struct Strides {
    int64_t k, v, k_scale, v_scale;
  };
  MaskedRows(const assay_judge_attention_params &p, int64_t requests, Strides token);

  bool given() const { return mask_.given(); }
  /** The part of a request with so many queries and keys; requests in order. */
  void turn_to(int64_t request, int64_t queries, int64_t keys);
  /** A row of it: the keys [begin, end) of `runs` that its mask shows. */
  void append(AttentionRows &rows, const std::vector<KeyRun> &runs, int64_t query, int64_t begin,
              int64_t end) const;

private:
  bool shows(int64_t query, int64_t key) const;

  ArrayView mask_, indptr_;
  Strides token_;
  int64_t at_ = 0, next_ = 0, keys_ = 0; ///< where the request's part begins and ends; its keys
  int64_t last_ = 0;                     ///< the last of all requests
};

} // namespace assay::oracle
