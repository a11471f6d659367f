// SPDX-License-Identifier: Apache-2.0
#include "properties/case/query_rows.h"

#include <algorithm>

namespace assay {

int query_tokens(const Problem &p, int) { return p.q_len; }

int query_rows(const Problem &p) { return p.batch * p.q_len; }

int row_of(const Problem &p, QueryRow at) { return at.request * p.q_len + at.token; }

QueryRow query_row(const Problem &p, int row) { return {row / p.q_len, row % p.q_len}; }

int rows_between_batch_strides(const Problem &p) { return p.q_len; }

Problem with_one_token(Problem p) {
  p.q_len = 1;
  return p;
}

void fit_requests(Problem &p) {
  if (p.family == Family::kPaged) p.seq_lens.resize(p.batch);
}

void erase_requests(Problem &p, int begin, int end) {
  p.batch -= end - begin;
  if (!p.seq_lens.empty()) p.seq_lens.erase(p.seq_lens.begin() + begin, p.seq_lens.begin() + end);
}

PositionRange visible_range(const Problem &p, int row) {
  const QueryRow at = query_row(p, row);
  const int position = p.seq_lens[at.request] - query_tokens(p, at.request) + at.token;
  if (position < 0) return {};
  return {p.window > 0 ? std::max(0, position - p.window + 1) : 0, position + 1};
}

} // namespace assay
