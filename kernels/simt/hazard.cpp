// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/hazard.h"

namespace assay::simt {

std::string file_of(const Site &site) {
  if (!site.file) return "";
  constexpr const char *kRoot = ASSAY_SOURCE_ROOT "/";
  const size_t root_length = std::strlen(kRoot);
  const char *file = site.file;
  if (std::strncmp(file, kRoot, root_length) == 0) file += root_length;
  while (std::strncmp(file, "../", 3) == 0)
    file += 3; // a compiler that was given paths from the build folder (ccache with a base_dir)
  return file;
}

std::string to_string(const Site &site) {
  return site.file ? file_of(site) + ":" + std::to_string(site.line) : "unknown site";
}

const char *to_string(HazardKind kind) {
  switch (kind) {
  case HazardKind::kDivergentBarrier:
    return "divergent-barrier";
  case HazardKind::kDeadlock:
    return "deadlock";
  case HazardKind::kAbsentLane:
    return "absent-lane";
  case HazardKind::kUninitSharedRead:
    return "uninitialised-shared-read";
  case HazardKind::kAsyncInFlightRead:
    return "async-in-flight-read";
  case HazardKind::kAsyncInFlightWrite:
    return "async-in-flight-write";
  case HazardKind::kSharedOutOfBounds:
    return "shared-out-of-bounds";
  case HazardKind::kGlobalOutOfBounds:
    return "global-out-of-bounds";
  case HazardKind::kMisaligned:
    return "misaligned";
  case HazardKind::kRedZoneWritten:
    return "red-zone-written";
  case HazardKind::kReadOnlyWritten:
    return "read-only-written";
  case HazardKind::kUninitGlobalRead:
    return "uninitialised-global-read";
  case HazardKind::kMissingFence:
    return "missing-fence";
  case HazardKind::kBarrierMisuse:
    return "mbarrier-misuse";
  case HazardKind::kTooEarly:
    return "too-early";
  case HazardKind::kUnordered:
    return "unordered-access";
  case HazardKind::kUnmodelled:
    return "unmodelled";
  }
  return "unknown-hazard";
}

} // namespace assay::simt
