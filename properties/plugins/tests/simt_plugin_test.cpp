// SPDX-License-Identifier: Apache-2.0
// `assay new plugin --simt`: its kernel is right as it stands, and mistakes in it are reported. All of
// them are in one library, as each compilation costs seconds.
#include "properties/plugins/project.h"
#include "properties/tests/cli_fixture.h"

namespace assay {
namespace {

struct Mistake {
  const char *name, *from, *to; ///< a part of kernel.cuh, and what stands there by mistake
  const char *said;             ///< of the report
  bool alone = false;           ///< it names no second line of the kernel
};

constexpr Mistake kMistakes[] = {
    {"full_parity", "full[stage.index], stage.round)", "full[stage.index], stage.round ^ 1)",
     "unordered-access"},
    {"empty_parity", "empty[stage.index], stage.round ^ 1)", "empty[stage.index], stage.round)",
     "deadlock"},
    {"empty_not_awaited", "arch::mbarrier_wait(&shared_.empty[stage.index], stage.round ^ 1);", "",
     "mbarrier-misuse"},
    {"full_not_awaited", "arch::mbarrier_wait(&shared_.full[stage.index], stage.round);", "",
     "unordered-access"},
    {"expects_keys_alone", "kBytes = 2 * kTile", "kBytes = kTile", "mbarrier-misuse"},
    {"expects_fp32", "sizeof(arch::bf16); // of K", "sizeof(float); // of K", "deadlock"},
    {"init_not_fenced", "arch::fence_mbarrier_init();", "", "missing-fence"},
    {"init_not_awaited", "arch::block_barrier();", "", "unordered-access"},
    {"stage_not_wrapped", "++index < kStages", "++index <= kStages", ""},
    {"round_kept", "round ^= 1;", "", ""},
    {"released_before_read", "attend(stage.index, first + consumer_ * kKeys);\n",
     "if (lane_ == 0) arch::mbarrier_arrive(&shared_.empty[stage.index]);\n", "unordered-access"},
    {"released_by_lane_0", "arch::warp_barrier();", "", "unordered-access"},
    {"released_by_one", "&shared_.empty[s], kConsumers", "&shared_.empty[s], 1", ""},
    {"copied_by_all_lanes", "if (lane_ != 0) return;\n    Stage", "Stage", ""},
    {"values_of_stage_0", "tensor_copy(shared_.values[stage]", "tensor_copy(shared_.values[0]", ""},
    {"merged_too_early", "arch::named_barrier(1, 32 * kConsumers);", "", ""},
    {"merge_awaits_all_warps", "named_barrier(1, 32 * kConsumers)", "named_barrier(1, kThreads)",
     "deadlock"},
    {"last_tile_left", "first < end_; first += kTile, stage.advance()) {\n      arch::mbarrier_wait("
     "&shared_.full", "first + kTile < end_; first += kTile, stage.advance()) {\n      "
     "arch::mbarrier_wait(&shared_.full", ""},
    {"tail_keys_seen", "from <= key && key < to ? own : arch::neg_infinity()", "own", "", true},
    {"tail_values_seen", "for (int j = from; j < to; ++j)", "for (int j = 0; j < kKeys; ++j)", "", true},
};

} // namespace
} // namespace assay
