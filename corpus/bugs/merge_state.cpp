// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/elements.h"
#include "corpus/bugs/launch.h"
#include "corpus/bugs/merge_state.h"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"

namespace assay::bugs {
namespace {

namespace arch = n_simt::arch;

constexpr int kThreads = 128;
constexpr float kNegInf = -__builtin_inff();

/// One state of a merge, as it lies in memory.
struct States {
  const void *o;
  const float *lse;
  int64_t o_row, o_head, lse_row, lse_head; ///< strides
};

States first_of(const assay_merge_state_params &p) {
  return {
      p.o_a, p.lse_a, p.o_a_stride_row, p.o_a_stride_head, p.lse_a_stride_row, p.lse_a_stride_head};
}
States second_of(const assay_merge_state_params &p) {
  if (is(Bug::merge_second_with_strides_of_first))
    return {p.o_b,
            p.lse_b,
            p.o_a_stride_row,
            p.o_a_stride_head,
            p.lse_b_stride_row,
            p.lse_b_stride_head};
  return {
      p.o_b, p.lse_b, p.o_b_stride_row, p.o_b_stride_head, p.lse_b_stride_row, p.lse_b_stride_head};
}

int64_t o_offset(int64_t row, int64_t row_stride, int64_t head, int64_t head_stride) {
  const int64_t at = row * row_stride + head * head_stride;
  return is(Bug::merge_offset_32_bit) ? static_cast<int32_t>(at) : at;
}

/// Eight components of a head of a row.
struct Piece {
  int64_t row, head;
  int piece;
  bool there;
};

int pieces_of(const assay_merge_state_params &p) { return p.head_dim / kPiece; }
int heads_of_block(const assay_merge_state_params &p) { return kThreads / pieces_of(p); }

/// Whole heads a block, so that a barrier lies between their LSEs' loads and stores.
Piece piece_of_thread(const assay_merge_state_params &p) {
  const int pieces = pieces_of(p), thread = static_cast<int>(arch::thread_idx());
  const int64_t block = arch::block_idx_x(), heads = heads_of_block(p);
  int64_t state = block * heads + thread / pieces;
  int piece = thread % pieces;
  bool there = thread < heads * pieces;
  if (is(Bug::merge_block_cuts_a_head)) {
    state = (block * kThreads + thread) / pieces;
    piece = static_cast<int>((block * kThreads + thread) % pieces);
    there = true;
  }
  there = there && state < int64_t{p.num_rows} * p.num_heads;
  return {state / p.num_heads, state % p.num_heads, piece, there};
}

/// Where the sides are empty: which one is the result, or none.
enum class Side { kBoth, kFirst, kSecond, kNone };

Side live_side(float lse_a, float lse_b) {
  const bool empty_a = lse_a == kNegInf, empty_b = lse_b == kNegInf;
  if (empty_a && empty_b && is(Bug::merge_both_empty_is_nan)) return Side::kBoth;
  if (empty_a && empty_b)
    return is(Bug::merge_both_empty_returns_first) ? Side::kFirst : Side::kNone;
  return empty_a ? Side::kSecond : empty_b ? Side::kFirst : Side::kBoth;
}

/// `o` becomes the merge of a and b; returns its LSE.
float merge(const assay_merge_state_params &p, const Piece &at, float lse_a, float lse_b,
            float *o) {
  const States a = first_of(p), b = second_of(p);
  float o_a[kPiece] = {}, o_b[kPiece] = {};
  const Side side = live_side(lse_a, lse_b);
  const int64_t dim = int64_t{at.piece} * kPiece;
  if (side == Side::kBoth || side == Side::kFirst)
    load_piece(a.o, o_offset(at.row, a.o_row, at.head, a.o_head) + dim, p.dtype, o_a);
  if (side == Side::kBoth || side == Side::kSecond)
    load_piece(b.o, o_offset(at.row, b.o_row, at.head, b.o_head) + dim, p.dtype, o_b);
  if (side != Side::kBoth) {
    std::copy_n(side == Side::kSecond ? o_b : o_a, kPiece, o);
    return side == Side::kSecond ? lse_b : lse_a;
  }
  const bool natural = p.lse_base == ASSAY_LSE_BASE_E;
  const float top = std::max(lse_a, lse_b), unit = natural ? kLog2E : 1.0f;
  const float w_a = std::exp2((lse_a - top) * unit), w_b = std::exp2((lse_b - top) * unit);
  const float inverse = 1.0f / (w_a + w_b);
  for (int i = 0; i < kPiece; ++i)
    o[i] = std::fma(w_b, o_b[i], w_a * o_a[i]) * inverse;
  return top + std::log2(w_a + w_b) * (natural ? kLn2 : 1.0f);
}

float load_lse(const States &states, const Piece &at) {
  return arch::global_load(states.lse + at.row * states.lse_row + at.head * states.lse_head);
}

void merge_thread(const assay_merge_state_params &p) {
  const Piece at = piece_of_thread(p);
  const float lse_a = at.there ? load_lse(first_of(p), at) : 0;
  States second = second_of(p);
  if (is(Bug::merge_second_lse_packed)) second.lse_row = p.num_heads, second.lse_head = 1;
  const float lse_b = at.there ? load_lse(second, at) : 0;
  arch::block_barrier(); // in place the LSE of a head is overwritten next
  if (!at.there) return;
  float o[kPiece];
  const float lse = merge(p, at, lse_a, lse_b, o);
  store_piece(p.out,
              o_offset(at.row, p.out_stride_row, at.head, p.out_stride_head) +
                  int64_t{at.piece} * kPiece,
              p.dtype, o);
  if (p.lse == nullptr || at.piece != 0 || is(Bug::merge_leaves_lse)) return;
  arch::global_store(p.lse + at.row * p.lse_stride_row + at.head * p.lse_stride_head, lse);
}

} // namespace

assay_status run_merge_state(const void *params) {
  const auto &p = *static_cast<const assay_merge_state_params *>(params);
  const int64_t states = int64_t{p.num_rows} * p.num_heads;
  int64_t blocks = (states + heads_of_block(p) - 1) / heads_of_block(p);
  if (is(Bug::merge_block_cuts_a_head)) blocks = (states * pieces_of(p) + kThreads - 1) / kThreads;
  // A thread for each head and piece of a row.
  if (is(Bug::merge_block_of_all_heads) && int64_t{p.num_heads} * pieces_of(p) > 1024)
    return ASSAY_LAUNCH_FAILED;
  return launch(p.stream, {blocks, kThreads}, [&] { merge_thread(p); });
}

} // namespace assay::bugs
