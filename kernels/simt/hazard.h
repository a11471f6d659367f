// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/simt/site.h"

namespace assay::simt {

enum class HazardKind : uint8_t {
  kDivergentBarrier,   ///< threads of a block disagree about a barrier (site, count, or exited)
  kDeadlock,           ///< no thread can run and not all have exited
  kAbsentLane,         ///< a lane of a warp collective's mask is elsewhere, exited or not named
  kUninitSharedRead,   ///< shared bytes read that nothing has written in this block
  kAsyncInFlightRead,  ///< shared bytes read before the wait of the async copy that fills them
  kAsyncInFlightWrite, ///< shared bytes written while an async copy to them is pending
  kSharedOutOfBounds,  ///< outside the block's dynamic shared memory
  kGlobalOutOfBounds,  ///< outside every registered buffer
  kMisaligned,         ///< address not a multiple of the access size
  kRedZoneWritten,     ///< guard bytes around a buffer changed
  kReadOnlyWritten,    ///< store to a buffer registered as read-only
  kUninitGlobalRead,   ///< bytes of a buffer read that nothing has defined
  kMissingFence,       ///< a matrix operation or a bulk copy without the fence that it needs
  kBarrierMisuse,      ///< an mbarrier not initialised, left inside a phase, or with wrong bytes
  kTooEarly,           ///< in an early start: before the wait for the grid in front, or without it
  kUnordered,          ///< what another block wrote, with nothing that orders it before this access
  kUnmodelled,         ///< the executor has no model for this; never a pass
};
constexpr uint32_t kHazardKindCount = 17;

const char *to_string(HazardKind kind); // "divergent-barrier", ...

constexpr uint32_t kNoIndex = 0xffffffffu;

struct Hazard {
  HazardKind kind = HazardKind::kUnmodelled;
  std::string message;       // one line; begins with file:line where one is known
  Site site;                 // where the hazard was seen
  Site other;                // site of the other party: a copy, a barrier; may be unknown
  uint32_t block = kNoIndex; // linear block index, kNoIndex outside a block
  uint32_t thread = kNoIndex;
  std::string buffer; // name of the buffer; for a red zone, of the buffer inside
};

} // namespace assay::simt
