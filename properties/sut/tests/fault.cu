// SPDX-License-Identifier: Apache-2.0
// A kernel that writes where no memory is: its context serves nothing afterwards.
#include "properties/sut/tests/fault.h"

#include <cstdint>

namespace assay {
namespace {

__global__ void write_nowhere() { *reinterpret_cast<volatile int *>(uint64_t{64}) = 1; }

} // namespace

void launch_fault(void *stream) { write_nowhere<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(); }

} // namespace assay
