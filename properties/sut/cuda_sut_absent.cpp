// SPDX-License-Identifier: Apache-2.0
// Stands in for cuda_sut.cpp in builds without nvcc.
#include "properties/sut/sut.h"

namespace assay {

std::unique_ptr<Sut> make_cuda_sut(const assay_kernel &) { return nullptr; }

std::string cuda_unavailable() {
  return "this build has no cuda target (the preset cuda has, with nvcc)";
}

} // namespace assay
