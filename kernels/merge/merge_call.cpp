// SPDX-License-Identifier: Apache-2.0
#include "kernels/merge/merge_call.h"

#include "kernels/abi/plugin.h"
#include "kernels/host/state_checks.h"
#include "kernels/merge/merge_policy.h"

#include <algorithm>

namespace assay {
namespace {

template <class Params>
assay_status check_merge_shape(const Params &p) {
  ASSAY_RETURN_IF_ERROR(check_target(p.target));
  if (p.dtype == ASSAY_FIELD61) ASSAY_RETURN_IF_ERROR(check_field(p.target, p.stream));
  ASSAY_RETURN_IF_ERROR(check_state_type(p.dtype, p.head_dim));
  ASSAY_RETURN_IF_ERROR(check_lse_base(p.lse_base));
  ASSAY_RETURN_IF_ERROR(check_range("num_rows", p.num_rows, 0, kMaxGrid));
  ASSAY_RETURN_IF_ERROR(check_range("num_heads", p.num_heads, 1, 1 << 20));
  // merge_state gives a state a power of two of lanes: at most twice its slices of eight.
  const int64_t threads = int64_t{p.num_rows} * p.num_heads * (p.head_dim / 8) * 2;
  if (threads / kMergeThreads > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "num_rows * num_heads * head_dim needs {} blocks, expected at most {}",
                threads / kMergeThreads, kMaxGrid);
  return ASSAY_OK;
}

constexpr StateNames kStateA = {
    "o_a", "lse_a", "o_a_stride_row", "o_a_stride_head", "lse_a_stride_row", "lse_a_stride_head"};
constexpr StateNames kStateB = {
    "o_b", "lse_b", "o_b_stride_row", "o_b_stride_head", "lse_b_stride_row", "lse_b_stride_head"};
constexpr StateNames kStatesIn = {"o_in",
                                  "lse_in",
                                  "o_in_stride_state",
                                  "o_in_stride_head",
                                  "lse_in_stride_state",
                                  "lse_in_stride_head"};

/// In place is allowed element on element only: with other strides one row's output would overwrite
/// another row's unread input.
assay_status check_in_place(const StateNames &names, const StateTensor &in,
                            const StateTensor &out) {
  const bool o = in.o == out.o, lse = out.lse != nullptr && in.lse == out.lse;
  if (o && (in.out_stride_row != out.out_stride_row || in.out_stride_head != out.out_stride_head))
    return fail(ASSAY_INVALID_ARGUMENT,
                "out aliases {} with other strides; in place needs equal strides", names.o);
  if (lse && (in.lse_stride_row != out.lse_stride_row || in.lse_stride_head != out.lse_stride_head))
    return fail(ASSAY_INVALID_ARGUMENT,
                "lse aliases {} with other strides; in place needs equal strides", names.lse);
  return ASSAY_OK;
}

/// Fields that both kernels have.
template <class Call, class Params>
void set_common(Call &call, const Params &p) {
  const bool base2 = p.lse_base == ASSAY_LSE_BASE_2;
  call.dtype = p.dtype;
  call.empty = p.num_rows == 0;
  call.params.num_heads = p.num_heads;
  call.params.head_dim = p.head_dim;
  call.params.scale = base2 ? 1.0f : static_cast<float>(kLog2E);
  call.params.unit = base2 ? 1.0f : static_cast<float>(kLn2);
  call.params.out = {
      p.out, p.lse, p.out_stride_row, p.out_stride_head, p.lse_stride_row, p.lse_stride_head};
}

/// row == heads * head; the product of a stride that nothing checks may leave 64 bits.
bool is_product(int64_t row, int64_t heads, int64_t head) {
  return row % heads == 0 && row / heads == head;
}

/// Heads become rows of one head each where the strides allow it: no division on the device.
void join_heads(MergeStateParams &m) {
  for (const StateTensor *t : {&m.a, &m.b, &m.out}) {
    const bool joins = is_product(t->out_stride_row, m.num_heads, t->out_stride_head);
    const bool lse_joins = is_product(t->lse_stride_row, m.num_heads, t->lse_stride_head);
    if (!joins || (t->lse != nullptr && !lse_joins)) return;
  }
  m.num_heads = 1;
  for (StateTensor *t : {&m.a, &m.b, &m.out}) {
    t->out_stride_row = t->out_stride_head;
    t->lse_stride_row = t->lse_stride_head;
  }
}

/// Lanes that share a state: one for every eight components, up to a warp.
int32_t lanes_log2(int32_t head_dim) {
  int32_t log2 = 0;
  while (log2 < 5 && (8 << log2) < head_dim)
    ++log2;
  return log2;
}

int64_t blocks_of(int64_t threads, int64_t block) { return (threads + block - 1) / block; }

} // namespace

assay_status MergeState::build(const assay_merge_state_params *p, MergeStateCall &call) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_merge_state_params"));
  ASSAY_RETURN_IF_ERROR(check_merge_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("reserved", p->reserved, 0, 0));
  set_common(call, *p);
  MergeStateParams &m = call.params;
  m.a = {const_cast<void *>(p->o_a), const_cast<float *>(p->lse_a), p->o_a_stride_row,
         p->o_a_stride_head,         p->lse_a_stride_row,           p->lse_a_stride_head};
  m.b = {const_cast<void *>(p->o_b), const_cast<float *>(p->lse_b), p->o_b_stride_row,
         p->o_b_stride_head,         p->lse_b_stride_row,           p->lse_b_stride_head};
  m.num_states = int64_t{p->num_rows} * p->num_heads;
  m.lanes_log2 = lanes_log2(p->head_dim);
  call.blocks = blocks_of(m.num_states << m.lanes_log2, kMergeThreads * kMergeGroupStates);
  if (call.empty) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_state(kStateA, m.a, false));
  ASSAY_RETURN_IF_ERROR(check_state(kStateB, m.b, false));
  ASSAY_RETURN_IF_ERROR(check_output_state(m.out, p->num_rows, p->num_heads, p->head_dim));
  ASSAY_RETURN_IF_ERROR(check_in_place(kStateA, m.a, m.out));
  ASSAY_RETURN_IF_ERROR(check_in_place(kStateB, m.b, m.out));
  join_heads(m);
  return ASSAY_OK;
}

assay_status MergeStates::build(const assay_merge_states_params *p, MergeStatesCall &call) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_merge_states_params"));
  ASSAY_RETURN_IF_ERROR(check_merge_shape(*p));
  ASSAY_RETURN_IF_ERROR(check_range("num_states", p->num_states, 0, 1 << 24));
  set_common(call, *p);
  MergeStatesParams &m = call.params;
  m.num_rows = p->num_rows;
  m.num_states = p->num_states;
  m.indptr = p->indptr;
  m.in = {const_cast<void *>(p->o_in), const_cast<float *>(p->lse_in), p->o_in_stride_state,
          p->o_in_stride_head,         p->lse_in_stride_state,         p->lse_in_stride_head};
  const bool few = p->num_states <= kMaxFewStates;
  m.lanes_log2 = few ? lanes_log2(p->head_dim) : std::max(3, lanes_log2(p->head_dim));
  m.workers = merge_workers(p->num_states, 1 << m.lanes_log2);
  call.threads = few              ? kFewStatesThreads
                 : m.workers == 1 ? kMergeStatesThreads
                                  : m.workers << m.lanes_log2;
  call.blocks = blocks_of((m.num_rows * p->num_heads * m.workers) << m.lanes_log2, call.threads);
  if (call.blocks > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED,
                "num_rows * num_heads needs {} blocks, expected at most {}", call.blocks, kMaxGrid);
  if (call.empty) return ASSAY_OK;
  if (p->num_states > 0) ASSAY_RETURN_IF_ERROR(check_state(kStatesIn, m.in, false));
  if (p->indptr != nullptr) ASSAY_RETURN_IF_ERROR(check_pointer("indptr", p->indptr, 4));
  ASSAY_RETURN_IF_ERROR(check_output_state(m.out, p->num_rows, p->num_heads, p->head_dim));
  if (p->num_states == 0) return ASSAY_OK; // nothing is read from the inputs
  ASSAY_RETURN_IF_ERROR(check_no_alias("out", p->out, "o_in", p->o_in));
  return check_no_alias("lse", p->lse, "lse_in", p->lse_in);
}

} // namespace assay
