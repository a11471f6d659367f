// SPDX-License-Identifier: Apache-2.0
// Typed failures with a message, thread local: what assay_last_error() returns.
#pragma once

#include "kernels/abi/assay.h"

#include <cstddef>
#include <string>

namespace assay {

/// Stores `message` for assay_last_error() and returns `status`.
assay_status set_error(assay_status status, std::string message);
/// Clears the message and returns ASSAY_OK.
assay_status set_ok();

/// A launch the CUDA runtime refused; `params` are those of the kernel, printed.
assay_status set_launch_error(const char *kernel, const char *error, int64_t blocks, int threads,
                              size_t shared_bytes, const std::string &params);
/// Checked arguments for which no kernel was compiled.
assay_status no_instantiation(assay_dtype dtype, assay_dtype kv_dtype, int32_t head_dim);

} // namespace assay

/// Returns the status of `expression` from the enclosing function unless it is ASSAY_OK.
#define ASSAY_RETURN_IF_ERROR(expression)                                                          \
  do {                                                                                             \
    if (const assay_status status_ = (expression); status_ != ASSAY_OK) return status_;            \
  } while (false)
