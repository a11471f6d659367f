// SPDX-License-Identifier: Apache-2.0
#include "kernels/ranks/rank_memory.h"

#include "kernels/abi/plugin.h"
#include "kernels/host/fail.h"
#include "kernels/simt/ranks.h"

#include <cstring>
#include <string>

namespace assay {

using simt::Access;
using simt::InitState;

RankMemory::RankMemory(simt::Stream &stream, int num_ranks, uint64_t window_bytes)
    : stream_(stream), num_ranks_(num_ranks) {
  for (int r = 0; r < num_ranks; ++r) {
    windows_.push_back(
        keep(stream_.memory.allocate(window_bytes, Access::kReadWrite, InitState::kDefined,
                                     "window of rank " + std::to_string(r))));
    std::memset(windows_.back(), 0, window_bytes);
  }
  status_ = static_cast<uint32_t *>(keep(stream_.memory.allocate(
      4 * static_cast<size_t>(num_ranks), Access::kReadWrite, InitState::kDefined, "status")));
  std::memset(status_, 0, 4 * static_cast<size_t>(num_ranks));
}

RankMemory::~RankMemory() {
  for (const void *buffer : buffers_)
    stream_.memory.release(buffer);
}

void *RankMemory::keep(void *buffer) {
  buffers_.push_back(buffer);
  return buffer;
}

void *RankMemory::scratch(uint64_t bytes, const char *name) {
  return keep(stream_.memory.allocate(bytes, Access::kReadWrite, InitState::kUndefined, name));
}

int32_t *RankMemory::words(const std::vector<int32_t> &values, const char *name) {
  void *buffer = keep(
      stream_.memory.allocate(4 * values.size(), Access::kReadOnly, InitState::kDefined, name));
  if (!values.empty()) std::memcpy(buffer, values.data(), 4 * values.size());
  return static_cast<int32_t *>(buffer);
}

assay_status RankMemory::run(simt::FunctionRef<assay_status(int rank)> rank) {
  std::vector<assay_status> status(static_cast<size_t>(num_ranks_), ASSAY_OK);
  std::vector<std::string> messages(static_cast<size_t>(num_ranks_));
  simt::run_ranks(stream_, static_cast<uint32_t>(num_ranks_), [&](uint32_t r) {
    status[r] = rank(static_cast<int>(r));
    if (status[r] != ASSAY_OK) messages[r] = assay_last_error();
  });
  // A hazard stops one rank; the others then give up.
  for (const bool hazards : {true, false})
    for (size_t r = 0; r < status.size(); ++r)
      if (status[r] != ASSAY_OK && (status[r] == ASSAY_HAZARD) == hazards)
        return set_error(status[r], messages[r]);
  return check_after();
}

assay_status RankMemory::check_after() const {
  for (int r = 0; r < num_ranks_; ++r)
    if (status_[r] != 0)
      return fail(ASSAY_HAZARD, "rank {} gave up waiting; the bits of its status are {}", r,
                  status_[r]);
  const size_t before = stream_.hazards.size();
  stream_.memory.check_red_zones(stream_.hazards);
  if (stream_.hazards.size() == before) return ASSAY_OK;
  return set_error(ASSAY_HAZARD, stream_.hazards.back().message);
}

} // namespace assay
