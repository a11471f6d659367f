// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/oracle_call.h"

#include "oracle/rows/build.h"
#include "properties/call/params.h"

namespace assay {
namespace {

OracleCall call_of(const Tensors &inputs, const assay_kernel &kernel,
                   std::shared_ptr<const oracle::KeyOrder> order) {
  OracleCall call{oracle::rows_of(kernel.family, input_params(inputs).get()),
                  {.arithmetic = kernel.arithmetic, .order = std::move(order)}};
  // Other kernels may split rows by a rule of their own, up to max_splits, whatever the call asks.
  auto *attention = std::get_if<oracle::AttentionRows>(&call.rows);
  if (attention != nullptr && kernel.batch_invariance != ASSAY_BATCH_FIXED)
    attention->num_splits = 0;
  return call;
}

} // namespace

OracleCall oracle_call(const Tensors &inputs, Sut &sut) {
  return call_of(inputs, sut.kernel(), sut.key_order(inputs));
}

OracleCall oracle_call(const Tensors &inputs, const assay_kernel &kernel) {
  return call_of(inputs, kernel, oracle::ask_key_order(kernel, input_params(inputs).get()));
}

} // namespace assay
