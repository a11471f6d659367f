// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/host/format.h"
#include "kernels/host/status.h"

namespace assay {

/// Stores the formatted message for assay_last_error() and returns `status`.
template <class... Args>
assay_status fail(assay_status status, std::type_identity_t<MessagePattern<Args...>> pattern,
                  const Args &...args) {
  return set_error(status, format<Args...>(pattern, args...));
}

} // namespace assay
