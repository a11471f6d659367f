// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/launch/status.h"

#include <fmt/format.h>
#include <utility>

namespace assay {

/// Stores the formatted message for assay_last_error() and returns `status`.
template <class... Args>
assay_status fail(assay_status status, fmt::format_string<Args...> format, Args &&...args) {
  return set_error(status, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace assay
