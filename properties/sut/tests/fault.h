// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay {

/// On a CUDA stream.
void launch_fault(void *stream);

} // namespace assay
