// SPDX-License-Identifier: Apache-2.0
// Typed failures with a message, thread local: what assay_last_error() returns.
#pragma once

#include "kernels/abi/assay.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace assay {

/// Stores `message` for assay_last_error() and returns `status`.
assay_status set_error(assay_status status, std::string message);
/// Clears the message and returns ASSAY_OK.
assay_status set_ok();

template <class... Args>
assay_status fail(assay_status status, fmt::format_string<Args...> format, Args &&...args) {
  return set_error(status, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace assay

/// Returns the status of `expression` from the enclosing function unless it is ASSAY_OK.
#define ASSAY_RETURN_IF_ERROR(expression)                                                          \
  do {                                                                                             \
    if (const assay_status status_ = (expression); status_ != ASSAY_OK) return status_;            \
  } while (false)
