// SPDX-License-Identifier: Apache-2.0
// Dense attention on warpgroups (sm_90a), for keys that many query rows share.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/blocks/sm90_producer.cuh"
#include "kernels/blocks/sm90_queries.cuh"
#include "kernels/blocks/sm90_transform.cuh"
#include "kernels/common/row_output.cuh"

namespace assay::ASSAY_TARGET {

/// A block has three warpgroups. Two are consumers, with 64 query rows each. The third one, the
/// producer (Sm90Producer), fills a ring of slots with tiles of K and V, which both consumers read.
///
/// A consumer starts the scores of tile j + 1 together with the product of the weights of tile j
/// and V. The softmax of a tile runs on other units. Where a block works through a list, the
/// consumers take turns at starting, so that one computes its softmax while the tensor cores work
/// for the other one (Shah et al., FlashAttention-3, 2024, section 3.1). Trees gain 4 % by that;
/// blocks of one item lose 1 to 4 % (kernels/bench/results/journal.md).
///
/// A block works through `Items`, a copyable cursor with `bool next(Work &)`. Each role has a
/// cursor of its own, so that the producer runs ahead into the next item. With Items::kOneItem
/// there is one.
///
/// A Work has
///   segment, kv_head, kv_begin, kv_end   its keys: a row of the page table, and a range
///   num_rows, first_row                  its query rows, and the first one of this block
///   keys(params)                         the paged cache of the keys
///   scale_log2(params)                   what makes base-2 logits of scores
///   query<E>(params, row)                the query of a row
///   partial_row(params, row)             where the partial of a row goes, in rows of o_accum
/// and with kTransforms (softcap, ALiBi) what Sm90Transform asks of it.
template <class Types, int kHeadDim, bool kTransforms = false>
class Sm90Core {
public:
  using E = typename Types::Mma; // what the tensor cores multiply
  using Producer = Sm90Producer<Types, kHeadDim>;
  static constexpr Sm90Policy kPolicy = Producer::kPolicy;
  static constexpr bool kFp8 = Types::kFp8;
  static constexpr int kDims = kHeadDim, kTile = kPolicy.tile, kSlots = kPolicy.slots;
  static constexpr int kRows = kSm90Rows, kGroups = 2, kGroupRows = kRows / kGroups;
  static constexpr int kGroupThreads = 128, kThreads = (kGroups + 1) * kGroupThreads;
  static constexpr int kGroupWarps = kGroupThreads / 32;
  static_assert(kGroupRows == 64);
  using Number = typename arch::Arithmetic<E>::Number;
  using KvMatrix = typename Producer::Matrix;
  using Queries = Sm90Queries<Types, kHeadDim>;
  using QueryMatrix = typename Queries::Matrix;
  static_assert(Producer::kWarps == kGroupWarps && Queries::kThreads == kGroupThreads);

  struct None {};
  struct SharedStorage {
    alignas(1024) typename Producer::Ring ring;
    arch::Mbarrier turns[kGroups]; // the other group has issued its products
    typename Queries::Unscale unscale[kGroups];
    std::conditional_t<kTransforms, Sm90Transform, None> transform[kGroups];
    typename Producer::SharedStorage producer;
    alignas(1024) arch::Vec4 queries[kGroups][QueryMatrix::kVectors];
  };

  /// `consumers` is how many consumers have rows in some item. Without kOneItem it is 2.
  template <class Params, class Items>
  static ASSAY_DEVICE void run(const Params &params, Items items, int consumers) {
    SharedStorage &shared = arch::shared_storage<SharedStorage>();
    const int group = static_cast<int>(arch::thread_idx()) / kGroupThreads;
    if (arch::thread_idx() == 0)
      for (int s = 0; s < kSlots; ++s) {
        arch::mbarrier_init(&shared.ring.full[s], Producer::kWarps);
        arch::mbarrier_init(&shared.ring.empty[s], kGroupWarps * consumers);
      }
    if (!Items::kOneItem && arch::thread_idx() < kGroups)
      arch::mbarrier_init(&shared.turns[arch::thread_idx()], kGroupWarps);
    arch::block_barrier();
    if (group == kGroups) {
      arch::lower_registers<kProducerRegisters<Items::kOneItem>>();
      Producer producer(shared.ring, shared.producer);
      for_each_item(items, [&](const auto &work) { producer.produce(params, work); });
    } else {
      arch::raise_registers<kConsumerRegisters<Items::kOneItem>>();
      if (group >= consumers) return;
      Cursor k, v; // K and V of a tile are neighbours in the ring
      v.advance();
      Turns turns;
      for_each_item(items, [&](const auto &work) {
        const int first_row = work.first_row + group * kGroupRows;
        if (Items::kOneItem || first_row < work.num_rows)
          consume(params, work, shared, group, first_row, k, v, turns, !Items::kOneItem);
        else
          pass(work, shared.ring, k, v);
      });
    }
  }

private:
  // A thread starts with 168 registers. The producer keeps 56 and gives 112 away, 56 to each
  // consumer. Consumers with eight fewer take 15 % longer over a long prefix (tree_attention,
  // prefix b256 p32768). With head_dim 256 a producer that walks a list does not fit in 56.
  template <bool kOneItem>
  static constexpr int kProducerRegisters = kHeadDim == 256 && !kOneItem ? 72 : 56;
  template <bool kOneItem>
  static constexpr int kConsumerRegisters = (3 * 168 - kProducerRegisters<kOneItem>) / 2;
  static constexpr int kSlices = kHeadDim > 128 ? 2 : 1; // parts of head_dim, one accumulator each
  static constexpr int kSliceDims = kHeadDim / kSlices;
  static constexpr int kScoreWords = kTile / 2, kSliceWords = kSliceDims / 2;
  using Ring = typename Producer::Ring;
  using Cursor = Sm90Cursor<kSlots>;
  /// What makes base-2 logits of the numbers that the softmax gets.
  using Scale = std::conditional_t<kTransforms, NoScale, typename Queries::Scale>;

  template <class Items, class F>
  static ASSAY_DEVICE void for_each_item(Items items, F f) {
    typename Items::Work work;
    if constexpr (Items::kOneItem) {
      items.next(work);
      f(work);
    } else {
      ASSAY_UNROLL_BY(1)
      while (items.next(work))
        f(work);
    }
  }

  /// The softmax state of this thread's rows, g and g + 8 of the 16 of its warp.
  struct Rows {
    Number m[2], d[2];
    Number alpha[2]; // what the last update multiplies older sums by
  };

  /// The order in which the two groups start their products: in turns, and group 0 begins. With
  /// head_dim 256 there is no register for it, and the groups go as they come, as they do with one
  /// item.
  class Turns {
  public:
    ASSAY_DEVICE void wait(SharedStorage &shared, int group) {
      // Group 0 waits for the turn of group 1 before its own. A fresh barrier counts as past it.
      arch::mbarrier_wait(&shared.turns[group], group == 0 ? round_ ^ 1 : round_);
      round_ ^= 1;
    }
    ASSAY_DEVICE void pass_on(SharedStorage &shared, int group) const {
      if (arch::lane_id() == 0) arch::mbarrier_arrive(&shared.turns[1 - group]);
    }

  private:
    uint32_t round_ = 0; // the parity of the phase that the group's next turn completes
  };

  /// Gives a slot back. All lanes of the warp have just waited for the product that read the slot.
  static ASSAY_DEVICE void release(Ring &ring, int slot) {
    if (arch::lane_id() == 0) arch::mbarrier_arrive(&ring.empty[slot]);
  }

  /// Passes an item without rows for this group: releases its slots as they fill.
  template <class Work>
  static ASSAY_DEVICE void pass(const Work &work, Ring &ring, Cursor &k, Cursor &v) {
    const auto pass_slot = [&](Cursor &next) {
      arch::mbarrier_wait(&ring.full[next.slot], next.round);
      release(ring, next.slot);
      next.next_tile();
    };
    ASSAY_UNROLL_BY(1)
    for (int base = work.kv_begin; base < work.kv_end; base += kTile) {
      pass_slot(k);
      pass_slot(v);
    }
  }

  template <class Params, class Work>
  static ASSAY_DEVICE void consume(const Params &params, const Work &work, SharedStorage &shared,
                                   int group, int first_row, Cursor &k, Cursor &v, Turns &turns,
                                   bool again) {
    Ring &ring = shared.ring;
    // Warps of the group may still be reading the queries of the last item.
    if (again) arch::named_barrier(1 + group, kGroupThreads);
    Queries::load(params, work, shared.queries[group], shared.unscale[group], first_row);
    if constexpr (kTransforms) shared.transform[group].load(params, work, first_row);
    arch::named_barrier(1 + group, kGroupThreads);
    const Scale scale(params, work, shared.unscale[group]);
    const arch::KMajorMatrix queries(shared.queries[group]);
    Rows rows;
    Number scores[kScoreWords], o[kSlices][kSliceWords];
    uint32_t weights[kTile / 16][4];
    ASSAY_UNROLL
    for (int i = 0; i < 2; ++i) {
      rows.m[i] = arch::neg_infinity();
      rows.d[i] = 0.0f;
    }
    ASSAY_UNROLL
    for (int s = 0; s < kSlices; ++s)
      ASSAY_UNROLL
    for (int i = 0; i < kSliceWords; ++i)
      o[s][i] = 0.0f;

    const auto start_scores = [&] {
      arch::mbarrier_wait(&ring.full[k.slot], k.round);
      const arch::KMajorMatrix keys(ring.slots[k.slot]);
      arch::wgmma_fence(scores);
      ASSAY_UNROLL
      for (int step = 0; step < kHeadDim / 16; ++step)
        arch::wgmma_m64k16<E>(scores, queries.at(QueryMatrix::column_step(step)),
                              keys.at(KvMatrix::column_step(step)), step > 0);
      arch::wgmma_commit();
    };
    const auto start_values = [&] {
      arch::mbarrier_wait(&ring.full[v.slot], v.round);
      const arch::NMajorMatrix values(ring.slots[v.slot], KvMatrix::kBlockBytes);
      arch::wgmma_fence(o, weights);
      ASSAY_UNROLL
      for (int step = 0; step < kTile / 16; ++step)
        ASSAY_UNROLL
      for (int s = 0; s < kSlices; ++s)
        arch::wgmma_m64k16<E>(
            o[s], weights[step],
            values.at(s * (kSliceDims / 64) * KvMatrix::kBlockBytes + step * 2048), true);
      arch::wgmma_commit();
    };
    // The scales are read again for every tile, as there are no registers to keep them in.
    const auto make_logits = [&](int base) {
      if constexpr (kTransforms) {
        const typename Queries::Scale of_scores(params, work, shared.unscale[group]);
        shared.transform[group].apply(scores, of_scores, work.features(params), base);
      }
      if (base + kTile > work.kv_end) mask(scores, work.kv_end - base);
    };
    if (work.kv_begin < work.kv_end) {
      start_scores();
      arch::wgmma_wait<0>(scores);
      release(ring, k.slot);
      k.next_tile();
      make_logits(work.kv_begin);
      update(rows, scores, scale);
      pack(scores, weights);
      const bool in_turns = again && kHeadDim != 256 && work.num_rows - work.first_row > kGroupRows;
      ASSAY_UNROLL_BY(1)
      for (int base = work.kv_begin + kTile; base < work.kv_end; base += kTile) {
        if (in_turns) turns.wait(shared, group);
        start_scores();
        start_values();
        if (in_turns) turns.pass_on(shared, group);
        arch::wgmma_wait<1>(scores);
        release(ring, k.slot);
        k.next_tile();
        make_logits(base);
        update(rows, scores, scale);
        arch::wgmma_wait<0>(o, weights);
        release(ring, v.slot);
        v.next_tile();
        rescale(rows, o);
        pack(scores, weights);
      }
      start_values();
      arch::wgmma_wait<0>(o, weights);
      if (again) {
        release(ring, v.slot);
        v.next_tile();
      }
    }
    store(params, work, first_row, rows, scale, o);
  }

  /// Leaves out keys at or behind `live`, counted in this tile.
  static ASSAY_DEVICE void mask(Number (&scores)[kScoreWords], int live) {
    const int first = 2 * (static_cast<int>(arch::lane_id()) % 4);
    ASSAY_UNROLL
    for (int i = 0; i < kScoreWords; ++i)
      if (8 * (i / 4) + first + i % 2 >= live) scores[i] = arch::neg_infinity();
  }

  /// Online softmax: makes weights 2^(scale (s - m)) of the scores. The row sums add these weights
  /// before they are rounded.
  static ASSAY_DEVICE void update(Rows &rows, Number (&scores)[kScoreWords], const Scale &scale) {
    Number shift[2];
    ASSAY_UNROLL
    for (int r = 0; r < 2; ++r) {
      Number m = rows.m[r];
      ASSAY_UNROLL
      for (int i = 2 * r; i < kScoreWords; i += 4)
        m = arch::max_num(m, arch::max_num(scores[i], scores[i + 1]));
      m = arch::max_num(m, arch::shfl_xor(m, 1));
      m = arch::max_num(m, arch::shfl_xor(m, 2));
      rows.alpha[r] = AttentionState<Number, 1>::weight(rows.m[r], m, scale.of(r));
      rows.m[r] = m;
      rows.d[r] = rows.d[r] * rows.alpha[r];
      // A tile whose keys are all masked leaves m = -inf; its weights must be 0, not NaN.
      shift[r] = arch::is_neg_infinity(m) ? Number(0.0f) : Number(-(scale.of(r) * m));
    }
    ASSAY_UNROLL
    for (int i = 0; i < kScoreWords; i += 2) {
      const int r = i / 2 % 2;
      scores[i] = arch::exp2_approx(arch::fma_rn(scores[i], scale.of(r), shift[r]));
      scores[i + 1] = arch::exp2_approx(arch::fma_rn(scores[i + 1], scale.of(r), shift[r]));
      rows.d[r] += scores[i] + scores[i + 1];
    }
  }

  /// Scales the sums so far to a maximum that has risen. It does so also where no maximum has: a
  /// branch costs more (kernels/bench/results/journal.md).
  static ASSAY_DEVICE void rescale(const Rows &rows, Number (&o)[kSlices][kSliceWords]) {
    ASSAY_UNROLL
    for (int s = 0; s < kSlices; ++s)
      ASSAY_UNROLL
    for (int i = 0; i < kSliceWords; ++i)
      o[s][i] = o[s][i] * rows.alpha[i / 2 % 2];
  }

  /// Rounds weights to E and packs them as the A operand of the next product. An accumulator has
  /// the layout of A.
  static ASSAY_DEVICE void pack(const Number (&scores)[kScoreWords],
                                uint32_t (&weights)[kTile / 16][4]) {
    ASSAY_UNROLL
    for (int i = 0; i < kTile / 4; ++i)
      weights[i / 4][i % 4] = arch::pack2<E>(scores[2 * i], scores[2 * i + 1]);
  }

  template <class Params, class Work>
  static ASSAY_DEVICE void store(const Params &params, const Work &work, int first_row,
                                 const Rows &rows, const Scale &scale,
                                 const Number (&o)[kSlices][kSliceWords]) {
    using State = AttentionState<Number, 1>;
    const int lane = static_cast<int>(arch::lane_id());
    const int warp = static_cast<int>(arch::warp_id()) % kGroupWarps;
    ASSAY_UNROLL
    for (int r = 0; r < 2; ++r) {
      State state = State::identity();
      state.m = rows.m[r];
      state.d = rows.d[r];
      state.d += arch::shfl_xor(state.d, 1);
      state.d += arch::shfl_xor(state.d, 2);
      const int row = first_row + 16 * warp + lane / 4 + 8 * r;
      if (row >= work.num_rows) continue;
      const int64_t index = work.partial_row(params, row);
      if (lane % 4 == 0)
        arch::global_store(words_of<Number>(params.lse_accum) + index, state.lse2(scale.of(r)));
      Number *out = words_of<Number>(params.o_accum) + index * kHeadDim + 2 * (lane % 4);
      const Number inverse = Scalar<Number>::reciprocal(state.d);
      ASSAY_UNROLL
      for (int i = 0; i < kHeadDim / 8; ++i) {
        const Number *pair = o[i * 8 / kSliceDims] + i * 8 % kSliceDims / 2 + 2 * r;
        const Number x = state.is_empty() ? Number(0.0f) : Number(pair[0] * inverse);
        const Number y = state.is_empty() ? Number(0.0f) : Number(pair[1] * inverse);
        arch::global_store(reinterpret_cast<arch::Vec2 *>(out + 8 * i),
                           arch::Vec2{arch::word_of(x), arch::word_of(y)});
      }
    }
  }
};

} // namespace assay::ASSAY_TARGET
