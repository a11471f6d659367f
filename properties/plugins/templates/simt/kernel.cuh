// SPDX-License-Identifier: Apache-2.0
// Paged decode attention by specialised warps: a producer brings tiles of K and V into a ring of
// stages, and two consumers read them. It is a right kernel to start from. The words of the
// hardware come from assay's kernels/arch, where each header begins with what its words mean. They
// have a body for CUDA (sm_90) and one for the CPU executor.
#pragma once

#include <assay/assay.h>

#include "kernels/arch/bulk_copy.cuh"
#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"

namespace {

namespace arch = assay::ASSAY_TARGET::arch;

constexpr int kTile = 16;  // A tile has so many keys, and a page has whole tiles.
constexpr int kStages = 3; // The ring holds so many tiles.
constexpr int kConsumers = 2, kThreads = 32 * (1 + kConsumers);
constexpr int kKeys = kTile / kConsumers; // A consumer takes so many keys of a tile.
constexpr int kLanesOfKey = 32 / kKeys;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

struct Params {
  assay_paged_params call;
  arch::TensorMap keys, values;
};

template <int kDim>
struct Shared {
  alignas(128) arch::Vec4 keys[kStages][kTile][kDim / 8]; // A vector has eight elements.
  alignas(128) uint32_t values[kStages][kTile][kDim / 2]; // A word has two elements.
  arch::Mbarrier full[kStages];              // Its phase ends with the last byte of a tile.
  arch::Mbarrier empty[kStages];             // Its phase ends when both consumers have read.
  float other_max, other_sum, other_o[kDim]; // Consumer 1 leaves its state here.
};

/// A place in the ring. The barriers of a stage complete one phase a round, so the parity of the
/// round is the parity to wait for.
struct Stage {
  int index = 0;
  uint32_t round = 0;
  ASSAY_DEVICE void advance() {
    if (++index < kStages) return;
    index = 0;
    round ^= 1;
  }
};

ASSAY_DEVICE void widen(const arch::Vec4 &v, float *out) {
  arch::unpack2<arch::bf16>(v.x, out[0], out[1]);
  arch::unpack2<arch::bf16>(v.y, out[2], out[3]);
  arch::unpack2<arch::bf16>(v.z, out[4], out[5]);
  arch::unpack2<arch::bf16>(v.w, out[6], out[7]);
}

/// A block has one query row: a head of a token of a request.
template <int kDim>
class Decode {
public:
  ASSAY_DEVICE explicit Decode(const Params &params)
      : params_(params), p_(params.call), shared_(arch::shared_storage<Shared<kDim>>()),
        lane_(static_cast<int>(arch::lane_id())), consumer_(static_cast<int>(arch::warp_id()) - 1) {
    const int row = static_cast<int>(arch::block_idx_x());
    head_ = row % p_.num_qo_heads;
    token_ = row / p_.num_qo_heads % p_.q_len;
    request_ = row / p_.num_qo_heads / p_.q_len;
    end_ = arch::global_load(p_.kv.seq_lens + request_) - p_.q_len + token_ + 1; // Rows are causal.
    const int oldest = p_.window_left >= 0 ? end_ - 1 - p_.window_left : 0;
    begin_ = oldest > 0 ? oldest : 0;
  }

  ASSAY_DEVICE void run() {
    if (arch::thread_idx() == 0) init_barriers();
    arch::block_barrier(); // Nobody uses a barrier before it is there.
    if (consumer_ < 0)
      produce();
    else
      consume();
  }

private:
  ASSAY_DEVICE void init_barriers() {
    for (int s = 0; s < kStages; ++s) {
      arch::mbarrier_init(&shared_.full[s], 1); // The producer arrives once.
      arch::mbarrier_init(&shared_.empty[s], kConsumers);
    }
    arch::fence_mbarrier_init(); // Copies belong to another proxy, which must know the barriers.
  }

  ASSAY_DEVICE int first_tile() const { return begin_ / kTile * kTile; }

  // ---- the producer ----

  /// One thread issues all copies, and never reads what they bring.
  ASSAY_DEVICE void produce() {
    if (lane_ != 0) return;
    Stage stage;
    for (int first = first_tile(); first < end_; first += kTile, stage.advance()) {
      // In the first round this waits for the phase before the first one, which is complete.
      arch::mbarrier_wait(&shared_.empty[stage.index], stage.round ^ 1);
      copy_tile(stage.index, first);
    }
  }

  ASSAY_DEVICE void copy_tile(int stage, int first) {
    const int64_t list = request_ * p_.kv.page_table_stride;
    const int page = arch::global_load(p_.kv.page_table + list + first / p_.kv.page_size);
    const int kv_head = head_ / (p_.num_qo_heads / p_.num_kv_heads);
    const int32_t at[4] = {0, first % p_.kv.page_size, kv_head, page};
    arch::Mbarrier *full = &shared_.full[stage];
    constexpr uint32_t kBytes = 2 * kTile * kDim * sizeof(arch::bf16); // K and V count.
    arch::mbarrier_arrive_expect_tx(full, kBytes);
    arch::tensor_copy(shared_.keys[stage], params_.keys, at, full);
    arch::tensor_copy(shared_.values[stage], params_.values, at, full);
  }

  // ---- a consumer ----

  /// Consumer 0 takes the first half of each tile, and consumer 1 the second half.
  ASSAY_DEVICE void consume() {
    load_query();
    Stage stage;
    for (int first = first_tile(); first < end_; first += kTile, stage.advance()) {
      arch::mbarrier_wait(&shared_.full[stage.index], stage.round);
      attend(stage.index, first + consumer_ * kKeys);
      arch::warp_barrier(); // All lanes have read the stage.
      if (lane_ == 0) arch::mbarrier_arrive(&shared_.empty[stage.index]);
    }
    merge();
  }

  /// Four lanes share a key: lane l has chunks l % 4, l % 4 + 4 and so on of its dims.
  ASSAY_DEVICE int chunk(int i) const { return lane_ % kLanesOfKey + kLanesOfKey * i; }

  ASSAY_DEVICE void load_query() {
    const int64_t at =
        request_ * p_.q_stride_batch + token_ * p_.q_stride_token + head_ * p_.q_stride_head;
    const auto *q = reinterpret_cast<const arch::Vec4 *>(static_cast<const uint16_t *>(p_.q) + at);
    ASSAY_UNROLL
    for (int i = 0; i < kChunks; ++i)
      widen(arch::global_load(q + chunk(i)), q_ + 8 * i);
  }

  /// Adds the keys first .. first + kKeys - 1 to the state, as far as the row sees them.
  ASSAY_DEVICE void attend(int stage, int first) {
    const int from = begin_ > first ? begin_ - first : 0;
    const int to = end_ - first < kKeys ? end_ - first : kKeys;
    if (from >= to) return;
    const int key = lane_ / kLanesOfKey;
    const float own = score(stage, key); // All lanes take part, as it shuffles.
    const float x = from <= key && key < to ? own : arch::neg_infinity();
    float top = x;
    ASSAY_UNROLL
    for (int step = kLanesOfKey; step < 32; step *= 2)
      top = arch::max_num(top, arch::shfl_xor(top, step));
    top = arch::max_num(top, max_);
    const float alpha = arch::exp2_approx(max_ - top); // It is 0 for the first keys.
    const float weight = arch::exp2_approx(x - top);
    float sum = weight;
    ASSAY_UNROLL
    for (int step = kLanesOfKey; step < 32; step *= 2)
      sum += arch::shfl_xor(sum, step);
    max_ = top;
    sum_ = sum_ * alpha + sum;
    ASSAY_UNROLL
    for (float &o : o_)
      o *= alpha;
    // Values behind the end may be NaN, and 0 * NaN is NaN: a weight of 0 would not hide them.
    for (int j = from; j < to; ++j)
      add_value(stage, j, arch::shfl_idx(weight, j * kLanesOfKey));
  }

  ASSAY_DEVICE float score(int stage, int key) const {
    float dot = 0, k[8];
    ASSAY_UNROLL
    for (int i = 0; i < kChunks; ++i) {
      widen(arch::shared_load(&shared_.keys[stage][consumer_ * kKeys + key][chunk(i)]), k);
      ASSAY_UNROLL
      for (int e = 0; e < 8; ++e)
        dot = arch::fma_rn(q_[8 * i + e], k[e], dot);
    }
    ASSAY_UNROLL
    for (int step = 1; step < kLanesOfKey; step *= 2)
      dot += arch::shfl_xor(dot, step);
    return dot * (p_.sm_scale * kLog2E); // Logits are in base 2 from here on.
  }

  /// Lane l has words l, l + 32 and so on of the row.
  ASSAY_DEVICE void add_value(int stage, int key, float weight) {
    ASSAY_UNROLL
    for (int i = 0; i < kWords; ++i) {
      float lo, hi;
      arch::unpack2<arch::bf16>(
          arch::shared_load(&shared_.values[stage][consumer_ * kKeys + key][lane_ + 32 * i]), lo,
          hi);
      o_[2 * i] = arch::fma_rn(weight, lo, o_[2 * i]);
      o_[2 * i + 1] = arch::fma_rn(weight, hi, o_[2 * i + 1]);
    }
  }

  // ---- the end of the row ----

  /// Consumer 1 hands its state to consumer 0, which writes the row. The producer takes no part.
  ASSAY_DEVICE void merge() {
    if (consumer_ == 1) hand_over();
    arch::named_barrier(1, 32 * kConsumers);
    if (consumer_ == 1) return;
    const bool empty = begin_ >= end_; // A row without keys has 0 and -inf.
    const float other_max = arch::shared_load(&shared_.other_max);
    const float top = empty ? 0.0f : arch::max_num(max_, other_max);
    const float own = arch::exp2_approx(max_ - top), other = arch::exp2_approx(other_max - top);
    const float sum = sum_ * own + arch::shared_load(&shared_.other_sum) * other;
    ASSAY_UNROLL
    for (int i = 0; i < 2 * kWords; ++i)
      o_[i] = o_[i] * own + arch::shared_load(&shared_.other_o[32 * i + lane_]) * other;
    store(empty ? 0.0f : arch::rcp_approx(sum), top + arch::log2_approx(sum));
  }

  ASSAY_DEVICE void hand_over() {
    ASSAY_UNROLL
    for (int i = 0; i < 2 * kWords; ++i)
      arch::shared_store(&shared_.other_o[32 * i + lane_], o_[i]);
    if (lane_ != 0) return;
    arch::shared_store(&shared_.other_max, max_);
    arch::shared_store(&shared_.other_sum, sum_);
  }

  ASSAY_DEVICE void store(float inverse, float lse) const {
    const int64_t at =
        request_ * p_.out_stride_batch + token_ * p_.out_stride_token + head_ * p_.out_stride_head;
    auto *out = reinterpret_cast<uint32_t *>(static_cast<uint16_t *>(p_.out) + at);
    ASSAY_UNROLL
    for (int i = 0; i < kWords; ++i)
      arch::global_store(out + lane_ + 32 * i,
                         arch::pack2<arch::bf16>(o_[2 * i] * inverse, o_[2 * i + 1] * inverse));
    if (p_.lse == nullptr || lane_ != 0) return;
    arch::global_store(p_.lse + request_ * p_.lse_stride_batch + token_ * p_.lse_stride_token +
                           head_ * p_.lse_stride_head,
                       p_.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * kLn2);
  }

  static constexpr int kChunks = kDim / 8 / kLanesOfKey; // Each lane has so many chunks of a key.
  static constexpr int kWords = kDim / 64; // Each lane has so many words of the output.

  const Params &params_;
  const assay_paged_params &p_;
  Shared<kDim> &shared_;
  const int lane_, consumer_; // Consumer -1 is the producer.
  int request_, token_, head_;
  int begin_, end_; // The row sees these keys.
  float q_[8 * kChunks];
  float max_ = arch::neg_infinity(), sum_ = 0, o_[2 * kWords] = {};
};

// The hardware reads the maps where the parameter lies, which is why it is a __grid_constant__.
template <int kDim>
ASSAY_KERNEL(kThreads, 1)
decode(const ASSAY_GRID_CONSTANT Params params) {
  Decode<kDim>(params).run();
}

} // namespace
