// SPDX-License-Identifier: Apache-2.0
// Internal: calls of attention as launches over pairs that share keys.
#pragma once

#include <optional>

#include "oracle/device/groups_kernels.cuh"

namespace assay::oracle::device {

/** The launches of a call whose elements are Words, with a replay or without. */
template <class Words, bool kReplays>
class GroupLaunches {
public:
  /// How many blocks of judge() are at work at once: that many teams have memory.
  int teams() const { return judges_; }
  int small_teams() const { return small_judges_; }

  void small(const GroupCall &call, int64_t blocks, cudaStream_t stream) {
    const size_t bytes = small_bytes(call.base.head_dim, call.base.dims);
    allow(reinterpret_cast<const void *>(&judge_whole_groups<Words, kReplays>),
          small_bytes(kMaxDim, kMaxDim));
    judge_whole_groups<Words, kReplays>
        <<<static_cast<unsigned>(blocks), kThreads, bytes, stream>>>(call, call.exact_round());
    require(cudaGetLastError(), "launch");
  }

  void large(GroupCall call, int64_t blocks, cudaStream_t stream) {
    // What is kept of a key stands where its logit is: that must not be read by two blocks.
    call.weighs_in_units = !kReplays && call.base.subnormal == 0 && call.value_parts() == 1 ? 1 : 0;
    const unsigned pairs = pairs_of(call);
    const GroupCall exact = call.exact_round();
    start_pairs<<<pairs, 32, 0, stream>>>(call);
    whole_rows<ScorePlaces<Words>>(score_units<Words>, call.base.head_dim, call, stream);
    round(call, stream);
    const bool again = kReplays && call.base.replay_scores != 0;
    if (again) {
      start_exact_pairs<kReplays><<<pairs, 32, 0, stream>>>(exact, call);
      units(score_units_exactly, sizeof(ExactMemory), sizeof(ExactMemory), exact, 1, stream);
      round(exact, stream);
    }
    judge_pairs<kReplays>
        <<<static_cast<unsigned>(blocks), kPairThreads, 0, stream>>>(call, again ? exact : call);
    require(cudaGetLastError(), "launch");
  }

private:
  static unsigned pairs_of(const GroupCall &call) {
    return static_cast<unsigned>(call.num_groups) * kGroupPairs;
  }
  static size_t small_bytes(int head_dim, int dims) {
    const size_t values =
        std::max(ValuePlaces<Words, kReplays, true>::kBytes, AroundPlaces<Words, kReplays>::kBytes);
    return std::max({ScorePlaces<Words>::bytes(SideLoop<Words>::parts_of(head_dim)),
                     AlongPlaces<Words>::bytes(SideLoop<Words>::parts_of(dims)), values,
                     kReplays ? sizeof(ExactMemory) : 0});
  }
  /// A kernel's limit is the process's, and other threads launch with it: the largest head_dim's,
  /// or what the device has.
  void allow(const void *kernel, size_t most) const {
    require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(std::min(most, room_))),
            "shared memory");
  }

  template <class Kernel>
  void units(Kernel kernel, size_t bytes, size_t most, const GroupCall &call, int parts,
             cudaStream_t stream) const {
    if (call.num_units == 0) return;
    allow(reinterpret_cast<const void *>(kernel), most);
    const dim3 grid(static_cast<unsigned>(call.num_units), static_cast<unsigned>(parts));
    kernel<<<grid, kThreads, bytes, stream>>>(call);
  }

  /// A kernel over all parts of keys or values.
  template <class Places, class Kernel>
  void whole_rows(Kernel kernel, int dims, const GroupCall &call, cudaStream_t stream) const {
    units(kernel, Places::bytes(SideLoop<Words>::parts_of(dims)),
          Places::bytes(SideLoop<Words>::parts_of(kMaxDim)), call, 1, stream);
  }

  template <bool kTiny, bool kWeighs>
  void values(const GroupCall &call, cudaStream_t stream) const {
    constexpr size_t kBytes = ValuePlaces<Words, kReplays, kTiny>::kBytes;
    units(sum_values_of_units<Words, kReplays, kTiny, kWeighs>, kBytes, kBytes, call,
          call.value_parts(), stream);
  }

  /// From logits to the sums around the outputs.
  void round(const GroupCall &call, cudaStream_t stream) const {
    constexpr size_t kBytes = AroundPlaces<Words, kReplays>::kBytes;
    const unsigned pairs = pairs_of(call), stripes = pairs * static_cast<unsigned>(call.stripes);
    const bool tiny = call.base.subnormal != 0, apart = call.weighs_in_units == 0;
    join_pairs<<<(pairs + 31) / 32, 32, 0, stream>>>(call);
    if (apart) {
      look_at_stripes<kReplays><<<stripes, kPairThreads, 0, stream>>>(call);
      scan_pairs<kReplays><<<pairs, kPairThreads, 0, stream>>>(call);
    }
    if (kReplays || tiny) weigh_stripes<kReplays><<<stripes, kPairThreads, 0, stream>>>(call);
    if (tiny)
      values<true, false>(call, stream);
    else if (apart)
      values<false, false>(call, stream);
    else
      values<false, !kReplays>(call, stream);
    if (!apart) scan_pairs<kReplays><<<pairs, kPairThreads, 0, stream>>>(call);
    join_outputs<kReplays><<<pairs, kPairThreads, 0, stream>>>(call);
    if (call.exact == 0)
      whole_rows<AlongPlaces<Words>>(sum_along_of_units<Words>, call.base.dims, call, stream);
    units(sum_around_of_units<Words, kReplays>, kBytes, kBytes, call, call.value_parts(), stream);
  }

  const size_t room_ = dynamic_memory_of_block();
  const int judges_ = blocks_at_once(judge_pairs<kReplays>, kPairThreads);
  const int small_judges_ = blocks_at_once(judge_whole_groups<Words, kReplays>, kThreads);
};

/** What calls need on a device. */
class GroupDevice {
public:
  TierReport judge(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   const JudgeOptions &options, cudaStream_t stream) {
    const CallArrays arrays = arrays_of(rows, model, options);
    const auto with = [&](auto &launches) {
      return judge(rows, outputs, model, options, arrays, ready(launches), stream);
    };
    if (rows.scale_blocks() > 0) return arrays.replays ? with(scaled_replay_) : with(scaled_);
    return arrays.replays ? with(replay_) : with(first_);
  }

private:
  static constexpr int64_t kLeastLarge = 1 << 18; ///< as keys_of_pairs counts: not one launch
  static constexpr GroupSizes kLarge{int64_t{512} << 20, 1056, 4, kGroupPairs, 8};
  static_assert(sizeof(GroupCall) <= 2048); // two are a kernel's arguments

  static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

  /// As few pairs in a group as all blocks have room for at once.
  static GroupSizes small_sizes(int64_t pairs, int blocks) {
    const int64_t each = std::clamp<int64_t>((pairs + blocks - 1) / blocks, 1, kGroupPairs);
    return undivided(static_cast<int32_t>(each));
  }

  /// Kernels are loaded when a call needs them.
  template <class Launches>
  static Launches &ready(std::optional<Launches> &launches) {
    return launches ? *launches : launches.emplace();
  }

  template <class Launches>
  TierReport judge(const AttentionRows &rows, const CallOutputs &outputs, const KernelModel &model,
                   const JudgeOptions &options, const CallArrays &arrays, Launches &launches,
                   cudaStream_t stream) {
    const bool large = keys_of_pairs(rows) >= kLeastLarge;
    const int most_teams = large ? launches.teams() : launches.small_teams();
    const int64_t pairs = int64_t{rows.out.rows()} * rows.out.heads;
    const GroupPlan plan =
        plan_groups(rows, arrays, large ? kLarge : small_sizes(pairs, most_teams));
    GroupCall call = arrays_.upload(
        [&](const Place &place) {
          return make_group_call(rows, outputs, model, arrays, plan, place);
        },
        stream);
    if (pairs == 0) return {};
    const auto teams = [&](const GroupWave &wave) {
      return std::min<int64_t>(most_teams, int64_t{wave.groups} * (large ? kGroupPairs : 1));
    };
    const KeyGroup *groups = call.groups;
    size_t most = 0;
    for (const GroupWave &wave : plan.waves) {
      size_t bytes = 0;
      place_wave(call, wave, groups, teams(wave), [&](size_t own) -> void * {
        bytes += padded(own);
        return nullptr;
      });
      most = std::max(most, bytes);
    }
    auto *scratch = scratch_.roomy<unsigned char>(most);
    return results_.of(call.base, rows.out, outputs.lse != nullptr, options.elements, stream,
                       [&](const Call &ready) {
                         call.base = ready;
                         for (const GroupWave &wave : plan.waves) {
                           size_t at = 0;
                           place_wave(call, wave, groups, teams(wave), [&](size_t own) -> void * {
                             unsigned char *place = scratch + at;
                             at += padded(own);
                             return place;
                           });
                           if (large)
                             launches.large(call, teams(wave), stream);
                           else
                             launches.small(call, teams(wave), stream);
                         }
                       });
  }

  PackedArrays arrays_;
  TeamResults results_;
  Buffer scratch_;
  std::optional<GroupLaunches<Halves, false>> first_;
  std::optional<GroupLaunches<Halves, true>> replay_;
  std::optional<GroupLaunches<Singles, false>> scaled_;
  std::optional<GroupLaunches<Singles, true>> scaled_replay_;
};

} // namespace assay::oracle::device
