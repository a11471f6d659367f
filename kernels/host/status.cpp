// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/fail.h"

#include "kernels/abi/plugin.h"

namespace assay {
namespace {
thread_local std::string last_error;
}

assay_status set_error(assay_status status, std::string message) {
  last_error = std::move(message);
  return status;
}

assay_status set_ok() {
  last_error.clear();
  return ASSAY_OK;
}

assay_status set_launch_error(const char *kernel, const char *error, int64_t blocks, int threads,
                              size_t shared_bytes, const std::string &params) {
  return fail(ASSAY_LAUNCH_FAILED, "{}: {} ({} blocks of {} threads, {} bytes shared) {}", kernel,
              error, blocks, threads, shared_bytes, params);
}

assay_status no_instantiation(assay_dtype dtype, assay_dtype kv_dtype, int32_t head_dim) {
  return fail(ASSAY_UNSUPPORTED, "no instantiation for dtype {}, kv_dtype {}, head_dim {}", dtype,
              kv_dtype, head_dim);
}

} // namespace assay

extern "C" uint32_t assay_abi_version(void) { return ASSAY_ABI_MAJOR << 16 | ASSAY_ABI_MINOR; }

extern "C" const char *assay_last_error(void) { return assay::last_error.c_str(); }

extern "C" const char *assay_status_name(assay_status status) {
  switch (status) {
  case ASSAY_OK:
    return "ok";
  case ASSAY_INVALID_ARGUMENT:
    return "invalid argument";
  case ASSAY_UNSUPPORTED:
    return "unsupported";
  case ASSAY_WORKSPACE_TOO_SMALL:
    return "workspace too small";
  case ASSAY_CAPACITY_EXCEEDED:
    return "capacity exceeded";
  case ASSAY_LAUNCH_FAILED:
    return "launch failed";
  case ASSAY_HAZARD:
    return "hazard";
  case ASSAY_INTERNAL:
    return "internal error";
  default:
    return "unknown status";
  }
}
