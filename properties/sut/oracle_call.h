// SPDX-License-Identifier: Apache-2.0
// A call as the oracle takes it.
#pragma once

#include "oracle/judge/problems.h"
#include "properties/sut/sut.h"

namespace assay {

/// Rows of a call and what its kernel declares. `inputs` must outlive it.
struct OracleCall {
  oracle::CallRows rows;
  oracle::KernelModel model;
};
/// Throws oracle::OrderError where the kernel gives no order of keys.
OracleCall oracle_call(const Tensors &inputs, Sut &sut);
/// The oracle's call for a kernel that is asked in this process.
OracleCall oracle_call(const Tensors &inputs, const assay_kernel &kernel);

} // namespace assay
