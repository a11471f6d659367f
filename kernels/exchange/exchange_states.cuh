// SPDX-License-Identifier: Apache-2.0
// exchange_states: the ranks of a call give each other the states of their rows, and each merges
// those of its heads. Decode over a KV cache that is cut along the sequence needs it.
//
// Each worker (a warp) writes what it has for a peer into the peer's window, as packets that carry
// their epoch: how often this worker has been through. It waits until the packets in its own window
// are of the same epoch, and merges. So data and flag are one store, and nothing is fenced: the
// protocol "LL" of NCCL, with 12 of 16 bytes in place of 8.
//
// Packets of even and of odd epochs have places of their own. A peer overwrites those of an epoch
// two epochs later, once it has this worker's packets of the epoch between. They were sent in
// another launch than that which read the overwritten ones, and so behind it. Nobody waits for
// readers. A rank that merges nothing gets one packet of each peer all the same: it must not run
// ahead of those that read what it sends.
#pragma once

#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/peer.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/common/paged_kv.cuh"
#include "kernels/exchange/merge_packets.cuh"

namespace assay::ASSAY_TARGET {

/// kRanks: at most so many ranks. A lane has kSlots places of a state at once, each with the
/// packets of all ranks: of two states, or of one with more packets than a warp has lanes.
template <class E, int kRanks, int kSlots>
class Exchange {
public:
  static ASSAY_DEVICE void run(const ExchangeParams &params) {
    const int worker =
        static_cast<int>(arch::block_idx_x()) * kExchangeWarps + static_cast<int>(arch::warp_id());
    arch::wait_for_previous_grid();
    if (worker >= params.workers) return;
    uint32_t *const epochs =
        reinterpret_cast<uint32_t *>(params.windows[params.rank] + params.window.epoch_at(worker));
    // All lanes load the epoch, so that none waits for it before states are loaded, too.
    const Exchange self(params, worker, next_epoch(arch::global_load(epochs)));
    for (int step = 1; step < params.window.num_ranks; ++step)
      self.send(wrapped(params.rank + step, params.window.num_ranks));
    arch::start_next_grid();
    const uint32_t missing = self.merge();
    arch::warp_barrier(); // every lane has read the epoch
    if (arch::lane_id() == 0) arch::global_store(epochs, self.epoch_);
    if (missing != 0) arch::atomic_or_relaxed(params.status, missing);
    if (arch::any(missing != 0)) self.store_nothing();
  }

private:
  using Number = typename arch::Arithmetic<E>::Number;
  using Packet = arch::Packet;

  ASSAY_DEVICE Exchange(const ExchangeParams &p, int worker, uint32_t epoch)
      : params_(p), worker_(worker), epoch_(epoch),
        group_(static_cast<int>(arch::lane_id()) >> p.lanes_log2),
        lane_(static_cast<int>(arch::lane_id()) & ((1 << p.lanes_log2) - 1)),
        wide_(p.packets > 32) {}

  /// 0 is that of a place where nothing was written. Even and odd ones take turns.
  static ASSAY_DEVICE uint32_t next_epoch(uint32_t epoch) { return epoch == ~0u ? 2 : epoch + 1; }
  static ASSAY_DEVICE int wrapped(int rank, int count) {
    return rank < count ? rank : rank - count;
  }

  ASSAY_DEVICE int groups() const { return 32 >> params_.lanes_log2; }
  ASSAY_DEVICE int first_state() const { return worker_ * params_.states_per_worker; }
  /// States of this worker among those of the rows and the heads of `rank`.
  ASSAY_DEVICE int count_of(int rank) const {
    const int left = params_.num_rows * params_.heads[rank].count - first_state();
    const int most = left < params_.states_per_worker ? left : params_.states_per_worker;
    return most < 0 ? 0 : most;
  }
  /// Where state `index` of this worker is among the heads of `rank`, `head` counted from their
  /// first.
  struct Spot {
    int row, head;
  };
  ASSAY_DEVICE Spot spot(int rank, int index) const {
    const auto state = static_cast<uint32_t>(first_state() + index);
    const HeadRange &heads = params_.heads[rank];
    const uint32_t row = divide(state, heads.divide);
    return {static_cast<int>(row),
            static_cast<int>(state - row * static_cast<uint32_t>(heads.count))};
  }

  /// A packet of a state of this worker.
  struct Slot {
    int index, packet;
    bool exists;
  };
  /// Calls f(slots) until this lane has been at its packets of `count` states, as often for each
  /// lane of the warp. The slots of a wide state follow each other, of its first packets on.
  template <class F>
  ASSAY_DEVICE void for_slots(int count, F f) const {
    const int states_at_once = wide_ ? 1 : kSlots * groups();
    const int packets_at_once = wide_ ? 32 * kSlots : params_.packets;
    ASSAY_UNROLL_BY(1)
    for (int base = 0; base < count; base += states_at_once)
      ASSAY_UNROLL_BY(1)
    for (int first = 0; first < params_.packets; first += packets_at_once) {
      Slot slots[kSlots];
      ASSAY_UNROLL
      for (int i = 0; i < kSlots; ++i) {
        Slot &slot = slots[i];
        slot.index = wide_ ? base : base + group_ + i * groups();
        slot.packet = wide_ ? first + lane_ + 32 * i : lane_;
        slot.exists = slot.index < count && slot.packet < params_.packets;
      }
      f(slots);
    }
  }

  /// In the window of `rank`, what `sender` wrote there: a packet of a state of this worker.
  ASSAY_DEVICE Packet *place(int rank, int sender, int index, int packet) const {
    char *const area = params_.windows[rank] + params_.window.area_at(epoch_, sender, worker_);
    return reinterpret_cast<Packet *>(area) + (index * params_.packets + packet);
  }
  /// A packet of this rank's own state.
  ASSAY_DEVICE Packet own(int row, int head, int packet) const {
    const StateTensor &t = params_.in;
    const auto *const o = reinterpret_cast<const uint32_t *>(
        static_cast<const E *>(t.o) + row * t.out_stride_row + head * t.out_stride_head);
    const auto *const lse = reinterpret_cast<const uint32_t *>(t.lse + row * t.lse_stride_row +
                                                               head * t.lse_stride_head);
    Packet own = {{0, 0, 0}, 0};
    ASSAY_UNROLL
    for (int k = 0; k < kPacketWords; ++k) {
      const int word = packet * kPacketWords + k;
      if (word <= params_.o_words) own.words[k] = arch::global_load(word == 0 ? lse : o + word - 1);
    }
    return own;
  }

  ASSAY_DEVICE void send(int peer) const {
    const int count = count_of(peer), first_head = params_.heads[peer].first;
    for_slots(count, [&](const Slot(&slots)[kSlots]) {
      Packet packets[kSlots];
      ASSAY_UNROLL
      for (int i = 0; i < kSlots; ++i)
        if (const Slot &slot = slots[i]; slot.exists) {
          const Spot at = spot(peer, slot.index);
          packets[i] = own(at.row, first_head + at.head, slot.packet);
        }
      ASSAY_UNROLL
      for (int i = 0; i < kSlots; ++i)
        if (const Slot &slot = slots[i]; slot.exists) {
          packets[i].epoch = epoch_;
          arch::store_packet(place(peer, params_.rank, slot.index, slot.packet), packets[i]);
        }
    });
    if (needs_sign(peer) && arch::lane_id() == 0)
      arch::store_packet(place(peer, params_.rank, 0, 0), {{0, 0, 0}, epoch_});
    if (epoch_ % kEpochsUntilFull >= kEpochsUntilFull - 2) send_rest(peer, count);
  }
  /// To the places that a call of more rows would use. So no packet stays until its number comes
  /// again, 2^32 calls later.
  ASSAY_DEVICE void send_rest(int peer, int count) const {
    const auto lane = static_cast<int>(arch::lane_id());
    Packet *const area = place(peer, params_.rank, 0, 0);
    const int64_t used = needs_sign(peer) ? 1 : int64_t{count} * params_.packets;
    ASSAY_UNROLL_BY(1)
    for (int64_t i = used + lane; i < params_.window.packets; i += 32)
      arch::store_packet(area + i, {{0, 0, 0}, epoch_});
  }

  /// Merges the states of all ranks in their order. Returns the bits of ranks of which a packet did
  /// not come to this lane.
  ASSAY_DEVICE uint32_t merge() const {
    const int count = count_of(params_.rank);
    if (needs_sign(params_.rank)) return await_signs();
    uint32_t missing = 0;
    Number lse[kSlots * kRanks];
    for_slots(count, [&](const Slot(&slots)[kSlots]) {
      missing |= merge_slots(slots, lse, missing != 0);
    });
    return missing;
  }
  /// A rank that merges no heads still waits for one packet of every peer: its worker 0 does, so
  /// that it cannot run ahead.
  ASSAY_DEVICE bool needs_sign(int rank) const {
    return params_.heads[rank].count == 0 && worker_ == 0;
  }
  ASSAY_DEVICE uint32_t await_signs() const {
    const int lane = static_cast<int>(arch::lane_id());
    const bool has_peer = lane < params_.window.num_ranks && lane != params_.rank;
    const Packet *const from[1] = {has_peer ? place(params_.rank, lane, 0, 0) : nullptr};
    Packet sign[1];
    const uint32_t wanted = has_peer ? 1 : 0;
    return arch::await_packets(from, wanted, epoch_, params_.timeout_ns, sign) != 0 ? 1u << lane
                                                                                    : 0;
  }

  ASSAY_DEVICE uint32_t merge_slots(const Slot (&slots)[kSlots], Number (&lse)[kSlots * kRanks],
                                    bool late) const {
    Packet packets[kSlots * kRanks];
    const Packet *from[kSlots * kRanks];
    uint32_t wanted = 0;
    ASSAY_UNROLL
    for (int i = 0; i < kSlots * kRanks; ++i) {
      const Slot &slot = slots[i / kRanks];
      const int r = i % kRanks;
      packets[i] = {{0, 0, 0}, 0};
      if (!slot.exists || r >= params_.window.num_ranks) continue;
      if (r == params_.rank) {
        const Spot at = spot(r, slot.index);
        packets[i] = own(at.row, params_.heads[r].first + at.head, slot.packet);
      } else {
        from[i] = place(params_.rank, r, slot.index, slot.packet);
        wanted |= 1u << i;
      }
    }
    const uint32_t missing =
        arch::await_packets(from, wanted, epoch_, late ? 0 : params_.timeout_ns, packets);
    share_lses(slots, packets, lse);
    // Nothing branches here: the slots are computed side by side.
    MergedPacket<Number> merged[kSlots];
    ASSAY_UNROLL
    for (int i = 0; i < kSlots; ++i)
      merged[i] = merge_packets<E, kRanks>(params_, packets + i * kRanks, lse + i * kRanks);
    ASSAY_UNROLL
    for (int i = 0; i < kSlots; ++i)
      if (const Slot &slot = slots[i]; slot.exists)
        store(spot(params_.rank, slot.index), slot.packet, merged[i]);
    return kSlots == 1 ? missing : (missing | missing >> kRanks) & ((1u << kRanks) - 1);
  }
  /// The lane of the first packet of a state has the LSEs, and tells the others.
  ASSAY_DEVICE void share_lses(const Slot (&slots)[kSlots], const Packet *packets,
                               Number (&lse)[kSlots * kRanks]) const {
    ASSAY_UNROLL
    for (int i = 0; i < kSlots * kRanks; ++i) {
      const Number first =
          arch::word_to<Number>(arch::shfl_idx(packets[i].words[0], group_ << params_.lanes_log2));
      const bool has_lse = slots[i / kRanks].packet < 32;
      lse[i] = has_lse ? first : lse[i < kRanks ? i : i - kRanks];
    }
  }

  ASSAY_DEVICE void store(Spot at, int packet, const MergedPacket<Number> &merged) const {
    const StateTensor &t = params_.out;
    auto *const o = reinterpret_cast<uint32_t *>(static_cast<E *>(t.o) + at.row * t.out_stride_row +
                                                 at.head * t.out_stride_head);
    ASSAY_UNROLL
    for (int k = 0; k < kPacketWords; ++k) {
      const int word = packet * kPacketWords + k;
      if (word != 0 && word <= params_.o_words)
        arch::global_store(o + word - 1, merged.packet.words[k]);
    }
    if (packet == 0 && t.lse != nullptr)
      arch::global_store(words_of<Number>(t.lse) + at.row * t.lse_stride_row +
                             at.head * t.lse_stride_head,
                         merged.lse);
  }

  /// Writes NaN to every row of this worker: at least one peer timed out.
  ASSAY_DEVICE void store_nothing() const {
    const Number nothing = Number(arch::neg_infinity()) - Number(arch::neg_infinity());
    Number o[8];
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k)
      o[k] = nothing;
    const int rank = params_.rank;
    for_slots(count_of(rank), [&](const Slot(&slots)[kSlots]) {
      ASSAY_UNROLL
      for (int i = 0; i < kSlots; ++i)
        if (const Slot &slot = slots[i]; slot.exists)
          store(spot(rank, slot.index), slot.packet, {packet_of<E>(o), nothing});
    });
  }

  const ExchangeParams &params_;
  const int worker_;
  const uint32_t epoch_;
  const int group_, lane_; // which of the groups that have a state each; which lane of it
  const bool wide_;        // a state has more packets than a warp has lanes
};

/// Grid: a warp a worker.
template <class E, int kRanks, int kSlots>
ASSAY_KERNEL(kExchangeThreads, exchange_blocks(kRanks))
exchange_states(const ASSAY_GRID_CONSTANT ExchangeParams params) {
  Exchange<E, kRanks, kSlots>::run(params);
}

} // namespace assay::ASSAY_TARGET
