// SPDX-License-Identifier: Apache-2.0
#include "properties/call/params.h"

#include "properties/call/feature_arrays.h"
#include "properties/call/tensors.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

/// The ABI's dtype of a tensor of `d`; exact numbers replace every type.
assay_dtype abi_dtype(const Tensors &t, Dtype d) {
  return t.numbers.empty() ? static_cast<assay_dtype>(d) : ASSAY_FIELD61;
}
assay_lse_base abi_base(LseBase b) {
  return b == LseBase::kNatural ? ASSAY_LSE_BASE_E : ASSAY_LSE_BASE_2;
}

/// Where the buffers of a call lie. To look at inputs no address to write to is needed.
class Addresses {
public:
  explicit Addresses(const std::vector<void *> &list)
      : inputs_(list.begin(), list.end()), outputs_(list) {}
  explicit Addresses(const Tensors &t) : outputs_(t.buffers.size(), nullptr) {
    for (const Buffer &b : t.buffers)
      inputs_.push_back(b.bytes.data());
  }
  const void *in(int buffer) const { return buffer < 0 ? nullptr : inputs_[buffer]; }
  void *out(int buffer) const { return buffer < 0 ? nullptr : outputs_[buffer]; }

private:
  std::vector<const void *> inputs_;
  std::vector<void *> outputs_;
};

/// So many elements in front of an address; null stays null.
const void *in_front(const void *address, int64_t elements, int size) {
  if (address == nullptr) return nullptr;
  return reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(address) -
                                        static_cast<uintptr_t>(elements * size));
}

/// The pool's base: page 0 of a huge pool lies outside the buffer, and nothing may touch it.
const void *pool_base(const void *buffer, int64_t first_page, int64_t page_stride, int size) {
  return in_front(buffer, first_page * page_stride, size);
}

void begin_at_token_0(assay_paged_params &out, const Tensors &t) {
  out.q = token_0(t, t.q, out.q);
  out.out = const_cast<void *>(token_0(t, t.o, out.out));
  out.lse = static_cast<float *>(const_cast<void *>(token_0(t, t.lse, out.lse)));
}

assay_paged_kv cache_params(const CacheView &c, const Addresses &at) {
  assay_paged_kv kv{};
  kv.k = pool_base(at.in(c.k), c.first_page, c.k_page, c.size);
  kv.v = pool_base(at.in(c.v), c.first_page, c.v_page, c.size);
  kv.k_stride_page = c.k_page;
  kv.k_stride_token = c.k_token;
  kv.k_stride_head = c.k_head;
  kv.v_stride_page = c.v_page;
  kv.v_stride_token = c.v_token;
  kv.v_stride_head = c.v_head;
  kv.page_table = static_cast<const int32_t *>(at.in(c.table));
  kv.seq_lens = static_cast<const int32_t *>(at.in(c.lens));
  kv.page_table_stride = c.table_stride;
  kv.page_indptr = static_cast<const int32_t *>(at.in(c.lists));
  kv.page_table_stride_head = c.table_head;
  kv.rows = c.rows;
  kv.max_pages = c.max_pages;
  kv.page_size = c.page_size;
  return kv;
}

/// The fields that paged and cascade parameters have in common.
template <class P>
void fill_attention(P &out, const Tensors &t, const Addresses &at, assay_target target,
                    void *stream) {
  const Problem &p = t.problem;
  out.struct_size = sizeof(P);
  out.target = target;
  out.dtype = abi_dtype(t, p.dtype);
  out.lse_base = abi_base(p.lse_base);
  out.batch = p.batch;
  out.num_qo_heads = p.num_qo_heads();
  out.num_kv_heads = p.num_kv_heads;
  out.head_dim = p.head_dim;
  out.sm_scale = sm_scale(p);
  out.num_splits = p.num_splits;
  out.q = at.in(t.q.buffer);
  out.q_stride_batch = t.q.row_stride;
  out.q_stride_head = t.q.head_stride;
  out.out = at.out(t.o.buffer);
  out.out_stride_batch = t.o.row_stride;
  out.out_stride_head = t.o.head_stride;
  out.lse = static_cast<float *>(at.out(t.lse.buffer));
  out.lse_stride_batch = t.lse.row_stride;
  out.lse_stride_head = t.lse.head_stride;
  out.stream = stream;
}

void fill_merge_state(assay_merge_state_params &out, const Tensors &t, const Addresses &at) {
  out.o_a = at.in(t.in_o[0].buffer);
  out.lse_a = static_cast<const float *>(at.in(t.in_lse[0].buffer));
  out.o_b = at.in(t.in_o[1].buffer);
  out.lse_b = static_cast<const float *>(at.in(t.in_lse[1].buffer));
  out.o_a_stride_row = t.in_o[0].row_stride;
  out.o_a_stride_head = t.in_o[0].head_stride;
  out.lse_a_stride_row = t.in_lse[0].row_stride;
  out.lse_a_stride_head = t.in_lse[0].head_stride;
  out.o_b_stride_row = t.in_o[1].row_stride;
  out.o_b_stride_head = t.in_o[1].head_stride;
  out.lse_b_stride_row = t.in_lse[1].row_stride;
  out.lse_b_stride_head = t.in_lse[1].head_stride;
}

void fill_merge_states(assay_merge_states_params &out, const Tensors &t, const Addresses &at) {
  out.num_states = t.problem.num_states;
  out.o_in = at.in(t.in_o[0].buffer);
  out.lse_in = static_cast<const float *>(at.in(t.in_lse[0].buffer));
  out.indptr = static_cast<const int32_t *>(at.in(t.indptr));
  out.o_in_stride_state = t.in_o[0].row_stride;
  out.o_in_stride_head = t.in_o[0].head_stride;
  out.lse_in_stride_state = t.in_lse[0].row_stride;
  out.lse_in_stride_head = t.in_lse[0].head_stride;
}

/// What only paged parameters have.
void fill_features(assay_paged_params &out, const Tensors &t, const Addresses &at) {
  const Problem &p = t.problem;
  out.kv_dtype = abi_dtype(t, kv_dtype(p));
  out.q_len = p.q_len;
  out.window_left = p.window_left;
  out.dcp_world_size = p.dcp_world_size;
  out.dcp_rank = p.dcp_rank;
  out.dcp_interleave = p.dcp_interleave;
  out.logits_soft_cap = softcap(p);
  out.q_stride_token = t.q.token_stride;
  out.out_stride_token = t.o.token_stride;
  out.lse_stride_token = t.lse.token_stride;
  out.k_scale_stride = p.k_scale == ScaleLayout::kHead;
  out.v_scale_stride = p.v_scale == ScaleLayout::kHead;
  pass_feature_arrays(out, t, [&](int buffer) { return at.in(buffer); });
  out.enable_pdl = t.problem.enable_pdl;
  out.even_lengths = t.problem.even_lengths;
}

template <class P>
void fill_merge(P &out, const Tensors &t, const Addresses &at, assay_target target, void *stream) {
  out.struct_size = sizeof(P);
  out.target = target;
  out.dtype = abi_dtype(t, t.problem.dtype);
  out.lse_base = abi_base(t.problem.lse_base);
  out.num_rows = t.problem.batch;
  out.num_heads = t.problem.num_kv_heads;
  out.head_dim = t.problem.head_dim;
  out.out = at.out(t.o.buffer);
  out.lse = static_cast<float *>(at.out(t.lse.buffer));
  out.out_stride_row = t.o.row_stride;
  out.out_stride_head = t.o.head_stride;
  out.lse_stride_row = t.lse.row_stride;
  out.lse_stride_head = t.lse.head_stride;
  out.stream = stream;
}

} // namespace

const void *AbiParams::get() const {
  switch (family) {
  case Family::kPaged:
    return &paged;
  case Family::kCascade:
    return &cascade;
  case Family::kMergeState:
    return &merge_state;
  case Family::kMergeStates:
    return &merge_states;
  }
  return nullptr;
}

void AbiParams::set_plan(void *plan, uint64_t bytes) {
  paged.plan = plan;
  paged.plan_bytes = bytes;
}

void AbiParams::set_workspace(void *workspace, uint64_t bytes) {
  paged.workspace = cascade.workspace = workspace;
  paged.workspace_bytes = cascade.workspace_bytes = bytes;
}

namespace {

AbiParams params_at(const Tensors &t, const Addresses &at, assay_target target, void *stream) {
  AbiParams out;
  out.family = t.problem.family;
  switch (out.family) {
  case Family::kPaged:
    fill_attention(out.paged, t, at, target, stream);
    fill_features(out.paged, t, at);
    out.paged.kv = cache_params(t.caches[0], at);
    begin_at_token_0(out.paged, t);
    break;
  case Family::kCascade:
    fill_attention(out.cascade, t, at, target, stream);
    for (const CacheView &c : t.caches)
      out.levels.push_back(
          {cache_params(c, at), static_cast<const int32_t *>(at.in(c.indptr)), {}});
    out.cascade.num_levels = static_cast<int32_t>(out.levels.size());
    out.cascade.levels = out.levels.data();
    break;
  case Family::kMergeState:
    fill_merge(out.merge_state, t, at, target, stream);
    fill_merge_state(out.merge_state, t, at);
    break;
  case Family::kMergeStates:
    fill_merge(out.merge_states, t, at, target, stream);
    fill_merge_states(out.merge_states, t, at);
    break;
  }
  return out;
}

} // namespace

const void *token_0(const Tensors &t, const View &view, const void *address) {
  return in_front(address, first_query_token(t.problem) * view.token_stride, view.size);
}

AbiParams make_params(const Tensors &t, const std::vector<void *> &addresses, assay_target target,
                      void *stream) {
  return params_at(t, Addresses(addresses), target, stream);
}

std::vector<void *> host_addresses(Tensors &t) {
  std::vector<void *> out;
  for (Buffer &b : t.buffers)
    out.push_back(b.bytes.data());
  return out;
}

AbiParams input_params(const Tensors &t) {
  return params_at(t, Addresses(t), ASSAY_TARGET_SIMT, nullptr);
}

} // namespace assay
