// SPDX-License-Identifier: Apache-2.0
// A build without CUDA.
#include "properties/machine/machine.h"

namespace assay {

std::unique_ptr<Machine> make_gpu() { return nullptr; }

} // namespace assay
