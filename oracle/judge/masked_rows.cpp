// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/masked_rows.h"

#include <algorithm>
#include <string>

namespace assay::oracle {

void append_list(AttentionRows &rows, const std::vector<KeyRun> &runs) {
  rows.runs.insert(rows.runs.end(), runs.begin(), runs.end());
  rows.first_run.push_back(static_cast<int64_t>(rows.runs.size()));
  rows.level_position.push_back(0);
}

MaskedRows::MaskedRows(const assay_judge_attention_params &p, int64_t requests, Strides token)
    : mask_("mask", p.mask), indptr_("mask_indptr", p.mask_indptr), token_(token),
      last_(requests - 1) {
  if (indptr_.given() && !given()) indptr_.fail(" is given without mask");
  if (given()) mask_.require({{"queries times keys of all requests"}}, {ASSAY_UINT8});
  if (indptr_.given())
    indptr_.require({{"requests + 1", requests + 1}}, {ASSAY_INT32, ASSAY_INT64});
}

void MaskedRows::turn_to(int64_t request, int64_t queries, int64_t keys) {
  if (!given()) return;
  at_ = indptr_.given() ? indptr_.integer(request) : next_;
  keys_ = keys;
  if (at_ < 0 || at_ > mask_.size(0))
    indptr_.fail("[" + std::to_string(request) + "] is " + std::to_string(at_) + ", mask has " +
                 std::to_string(mask_.size(0)) + " elements");
  next_ = at_ + queries * keys; // both below 2^31
  if (next_ > mask_.size(0))
    mask_.fail(" has " + std::to_string(mask_.size(0)) + " elements, request " +
               std::to_string(request) + " has those from " + std::to_string(at_) + " to " +
               std::to_string(next_));
  if (indptr_.given() ? next_ != indptr_.integer(request + 1)
                      : request == last_ && next_ != mask_.size(0))
    mask_.fail(" of request " + std::to_string(request) + " ends at " +
               std::to_string(indptr_.given() ? indptr_.integer(request + 1) : mask_.size(0)) +
               ", expected " + std::to_string(next_) + " (queries times keys)");
}

bool MaskedRows::shows(int64_t query, int64_t key) const {
  const int64_t at = (at_ + query * keys_ + key) * mask_.stride(0);
  return static_cast<const unsigned char *>(mask_.data())[at] != 0;
}

void MaskedRows::append(AttentionRows &rows, const std::vector<KeyRun> &runs, int64_t query,
                        int64_t begin, int64_t end) const {
  std::vector<KeyRun> seen;
  int64_t first = -1, last = -1;
  int32_t count = 0;
  for (const KeyRun &run : runs) {
    bool open = false;
    const int64_t until = std::min<int64_t>(end, int64_t{run.position} + run.count);
    for (int64_t key = std::max<int64_t>(begin, run.position); key < until; ++key) {
      if (!shows(query, key)) {
        open = false;
        continue;
      }
      if (!open) {
        const int64_t skip = key - run.position;
        seen.push_back({count, 0, run.pool, run.k_at + skip * token_.k, run.v_at + skip * token_.v,
                        run.k_scale_at + skip * token_.k_scale,
                        run.v_scale_at + skip * token_.v_scale});
      }
      open = true;
      ++seen.back().count;
      ++count;
      first = first < 0 ? key : first;
      last = key;
    }
  }
  rows.list.push_back(rows.lists());
  append_list(rows, seen);
  rows.begin.push_back(0);
  rows.end.push_back(count);
  rows.behind.push_back(0);
  rows.span.push_back(first < 0 ? 0 : static_cast<int32_t>(last - first + 1));
}

} // namespace assay::oracle
