// SPDX-License-Identifier: Apache-2.0
#include "properties/case/query_rows.h"

#include <algorithm>
#include <numeric>

#include "properties/case/hash.h"

namespace assay {

int query_tokens(const Problem &p, int request) {
  return p.query_tokens.empty() ? p.q_len : p.query_tokens[request];
}

std::vector<int> keys_per_request(const Problem &p) {
  if (p.family == Family::kPaged) return p.seq_lens;
  std::vector<int> keys(p.batch, 0);
  for (const CascadeLevel &level : p.levels) {
    int request = level.first;
    for (size_t s = 0; s < level.requests.size(); ++s)
      for (int i = 0; i < level.requests[s]; ++i)
        keys[request++] += level.lens[s];
  }
  return keys;
}

int query_rows(const Problem &p) { return row_of(p, {p.batch, 0}); }

int row_of(const Problem &p, QueryRow at) {
  const auto &tokens = p.query_tokens;
  if (tokens.empty()) return at.request * p.q_len + at.token;
  return std::accumulate(tokens.begin(), tokens.begin() + at.request, at.token);
}

QueryRow query_row(const Problem &p, int row) {
  if (p.query_tokens.empty()) return {row / p.q_len, row % p.q_len};
  QueryRow at{0, row};
  while (at.token >= p.query_tokens[at.request])
    at.token -= p.query_tokens[at.request++];
  return at;
}

int first_query_token(const Problem &p) {
  if (p.query_tokens.empty() || p.base_seed == 0) return 0;
  return static_cast<int>(hash_values(0xf125u, p.base_seed) % 4);
}

namespace {

/// The position of key `index` of the cache.
int position_of(const Problem &p, int index) {
  const int chunk = index / p.dcp_interleave;
  return (chunk * p.dcp_world_size + p.dcp_rank) * p.dcp_interleave + index % p.dcp_interleave;
}

} // namespace

int global_tokens(const Problem &p, int request) {
  const int keys = p.seq_lens[request];
  if (p.foreign_tokens.empty()) return keys;
  const int first = keys > 0 ? position_of(p, keys - 1) + 1 : 0;
  return std::min(first + p.foreign_tokens[request], position_of(p, keys));
}

int keys_before(const Problem &p, int tokens) {
  tokens = std::max(0, tokens);
  if (p.foreign_tokens.empty()) return tokens;
  const int turn = p.dcp_world_size * p.dcp_interleave;
  const int begun = tokens % turn - p.dcp_rank * p.dcp_interleave;
  return tokens / turn * p.dcp_interleave + std::clamp(begun, 0, p.dcp_interleave);
}

int rows_between_batch_strides(const Problem &p) {
  return p.query_tokens.empty() ? p.q_len : std::max(1, query_rows(p));
}

void forget_shard(Problem &p) {
  p.foreign_tokens.clear();
  p.dcp_world_size = p.dcp_rank = p.dcp_interleave = 0;
}

Problem with_one_token(Problem p) {
  p.q_len = 1;
  p.query_tokens.clear();
  return p;
}

void fit_requests(Problem &p) {
  if (p.family == Family::kPaged) p.seq_lens.resize(p.batch);
  if (!p.foreign_tokens.empty()) p.foreign_tokens.resize(p.batch);
  if (p.foreign_tokens.empty()) forget_shard(p);
  if (p.query_tokens.empty()) return;
  p.query_tokens.resize(p.batch, p.q_len);
  for (int &tokens : p.query_tokens)
    tokens = std::min(tokens, p.q_len);
}

void erase_requests(Problem &p, int begin, int end) {
  p.batch -= end - begin;
  for (std::vector<int> *list : {&p.seq_lens, &p.query_tokens, &p.foreign_tokens})
    if (!list->empty()) list->erase(list->begin() + begin, list->begin() + end);
  if (p.foreign_tokens.empty()) forget_shard(p);
}

namespace {

int position_of_row(const Problem &p, int row) {
  const QueryRow at = query_row(p, row);
  return global_tokens(p, at.request) - query_tokens(p, at.request) + at.token;
}

} // namespace

int key_distance(const Problem &p, int row, int key) {
  return (p.foreign_tokens.empty() ? key : position_of(p, key)) - position_of_row(p, row);
}

PositionRange visible_range(const Problem &p, int row) {
  const int position = position_of_row(p, row);
  if (position < 0) return {};
  const int oldest = window_keys(p) > 0 ? position - window_keys(p) + 1 : 0;
  return {keys_before(p, oldest), keys_before(p, position + 1)};
}

} // namespace assay
