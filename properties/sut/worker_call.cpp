// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/worker_call.h"

#include <cstdint>
#include <limits>

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using nlohmann::json;
using Sizes = std::vector<int64_t>;

constexpr const char *kDtypes[] = {"fp16", "bf16", "fp32", "e4m3", "e5m2"}; // by Dtype
constexpr const char *kInt32 = "int32";

/// Writes the tensors of one call.
class Describer {
public:
  Describer(const Tensors &t, const CallLayout &layout) : t_(t), layout_(layout) {}

  json tensor(int buffer, const char *dtype, const Sizes &shape, const Sizes &strides,
              int64_t before = 0) const {
    if (buffer < 0) return nullptr;
    return {{"dtype", dtype},
            {"shape", shape},
            {"strides", strides},
            {"offset", static_cast<int64_t>(layout_.offsets[buffer]) - before},
            {"output", t_.buffers[buffer].output}};
  }
  json vector(int buffer, const char *dtype, int64_t count) const {
    return tensor(buffer, dtype, {count}, {1});
  }

  /// [requests, tokens, heads, width]; without requests in a ragged call, without tokens in the
  /// families that have none, and without width for an LSE.
  json rows(const View &v, int64_t rows, int64_t width) const {
    const bool paged = t_.problem.family == Family::kPaged, values = width > 0;
    const bool ragged = !t_.problem.query_tokens.empty();
    Sizes shape{ragged ? rows : rows / v.tokens}, strides{ragged ? v.token_stride : v.row_stride};
    if (paged && !ragged) shape.push_back(v.tokens), strides.push_back(v.token_stride);
    shape.push_back(t_.heads()), strides.push_back(v.head_stride);
    if (values) shape.push_back(width), strides.push_back(1);
    return tensor(v.buffer, values ? kDtypes[static_cast<int>(t_.problem.dtype)] : "fp32", shape,
                  strides);
  }

  void cache(json &to, const CacheView &c) const {
    const char *dtype = kDtypes[static_cast<int>(kv_dtype(t_.problem))];
    const Sizes shape{int64_t{c.first_page} + c.pool_pages, c.page_size, t_.problem.num_kv_heads,
                      t_.problem.head_dim};
    const auto pool = [&](int buffer, int64_t page, int64_t token, int64_t head) {
      return tensor(buffer, dtype, shape, {page, token, head, 1}, c.first_page * page * c.size);
    };
    to["k_cache"] = pool(c.k, c.k_page, c.k_token, c.k_head);
    to["v_cache"] = pool(c.v, c.v_page, c.v_token, c.v_head);
    page_table(to, c);
    to["seq_lens"] = vector(c.lens, kInt32, c.rows);
    to["page_size"] = c.page_size;
    to["max_pages"] = c.max_pages;
  }

  void page_table(json &to, const CacheView &c) const {
    to["page_indptr"] = vector(c.lists, kInt32, c.rows + 1);
    const int64_t entries = c.lists < 0 ? 0 : c.list_begin.back();
    to["page_table"] =
        c.lists < 0 ? tensor(c.table, kInt32, {c.rows, c.max_pages}, {c.table_stride, 1})
        : c.table_head > 0
            ? tensor(c.table, kInt32, {t_.problem.num_kv_heads, entries}, {entries, 1})
            : vector(c.table, kInt32, entries);
  }

  json attention() const {
    const Problem &p = t_.problem;
    return {{"kv_dtype", kDtypes[static_cast<int>(kv_dtype(p))]},
            {"batch", p.batch},
            {"num_qo_heads", p.num_qo_heads()},
            {"num_kv_heads", p.num_kv_heads},
            {"sm_scale", sm_scale(p)},
            {"num_splits", p.num_splits},
            {"q", rows(t_.q, t_.rows(), p.head_dim)}};
  }

  json paged() const {
    const Problem &p = t_.problem;
    json out = attention();
    out.update({{"q_len", p.q_len},
                {"window_left", p.window_left},
                {"logits_soft_cap", softcap(p)},
                {"enable_pdl", p.enable_pdl},
                {"even_lengths", p.even_lengths}});
    cache(out, t_.caches[0]);
    out["k_scale"] = vector(t_.k_scale, "fp32", scales(p.k_scale));
    out["v_scale"] = vector(t_.v_scale, "fp32", scales(p.v_scale));
    out["alibi_slopes"] = vector(t_.slopes, "fp32", t_.heads());
    out["sinks"] = vector(t_.sinks, "fp32", t_.heads());
    out["qo_indptr"] = vector(buffer("qo_indptr"), kInt32, p.batch + 1);
    out["global_lens"] = vector(buffer("global_lens"), kInt32, p.batch);
    out.update({{"dcp_world_size", p.dcp_world_size},
                {"dcp_rank", p.dcp_rank},
                {"dcp_interleave", p.dcp_interleave}});
    return out;
  }

  /// By name; -1 where the call has none.
  int buffer(const char *name) const {
    for (const FeatureArray &array : t_.feature_arrays)
      if (t_.buffers[array.buffer].name == name) return array.buffer;
    return -1;
  }

  json cascade() const {
    json out = attention();
    out["levels"] = json::array();
    for (const CacheView &c : t_.caches) {
      json level;
      cache(level, c);
      level["segment_indptr"] = vector(c.indptr, kInt32, c.rows + 1);
      out["levels"].push_back(std::move(level));
    }
    return out;
  }

  json merge_state() const {
    const int64_t n = t_.problem.batch, d = t_.problem.head_dim;
    return {{"o_a", rows(t_.in_o[0], n, d)},
            {"lse_a", rows(t_.in_lse[0], n, 0)},
            {"o_b", rows(t_.in_o[1], n, d)},
            {"lse_b", rows(t_.in_lse[1], n, 0)}};
  }

  json merge_states() const {
    const int64_t n = t_.first_state.back();
    return {{"num_states", t_.problem.num_states},
            {"o_in", rows(t_.in_o[0], n, t_.problem.head_dim)},
            {"lse_in", rows(t_.in_lse[0], n, 0)},
            {"indptr", vector(t_.indptr, kInt32, t_.problem.batch + 1)}};
  }

  json family() const {
    switch (t_.problem.family) {
    case Family::kPaged:
      return paged();
    case Family::kCascade:
      return cascade();
    case Family::kMergeState:
      return merge_state();
    case Family::kMergeStates:
      return merge_states();
    }
    return {};
  }

private:
  int64_t scales(ScaleLayout layout) const {
    return layout == ScaleLayout::kHead ? t_.problem.num_kv_heads : 1;
  }
  const Tensors &t_;
  const CallLayout &layout_;
};

} // namespace

json describe_call(const Tensors &t, const CallLayout &layout) {
  const Problem &p = t.problem;
  const Describer d(t, layout);
  json out = d.family();
  out["family"] = name_of(p.family);
  out["dtype"] = kDtypes[static_cast<int>(p.dtype)];
  out["lse_base"] = p.lse_base == LseBase::kNatural ? json("e") : json(2);
  out["head_dim"] = p.head_dim;
  if (is_merge(p)) out["num_rows"] = p.batch, out["num_heads"] = t.heads();
  out["out"] = d.rows(t.o, t.rows(), p.head_dim);
  out["lse"] = d.rows(t.lse, t.rows(), 0);
  return out;
}

bool read_reply(const std::string &text, uint64_t id, RunResult &result) {
  const json reply = json::parse(text, nullptr, false);
  if (!reply.is_object()) return false;
  const auto at = [&](const char *name) {
    const auto found = reply.find(name);
    return found == reply.end() ? json() : *found;
  };
  const json status = at("status"), message = at("message"), raised = at("raised");
  if (at("reply") != json(id) || !status.is_number_integer() || !message.is_string() ||
      !(raised.is_null() || raised.is_string()))
    return false;
  if (status < 0 || status > int64_t{std::numeric_limits<assay_status>::max()}) return false;
  result.status = status.get<assay_status>();
  result.message = message.get<std::string>();
  if (raised.is_string())
    result.hazards.push_back({.kind = Hazard::Kind::kRaised,
                              .name = raised.get<std::string>(),
                              .text = "the kernel raised " + raised.get<std::string>()});
  return true;
}

} // namespace assay
