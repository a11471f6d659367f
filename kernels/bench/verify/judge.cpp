// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/judge.h"

namespace assay::bench {

std::vector<SampledRow> sampled_rows(const std::vector<int32_t> &lengths, int tokens, int num_heads,
                                     int num_kv_heads) {
  const int group = num_heads / num_kv_heads;
  std::vector<SampledRow> rows;
  for (int request : sample_requests(lengths))
    for (int kv_head : sample_heads(request, num_kv_heads))
      for (int token = 0; token < tokens; ++token)
        for (int member = 0; member < group; ++member)
          rows.push_back({request * tokens + token, kv_head * group + member});
  return rows;
}

std::function<std::string(const SampledRow &)> named_by(const CheckedOutputs &outputs,
                                                        int num_heads) {
  return [&outputs, num_heads](const SampledRow &at) {
    return outputs.row_name(int64_t{at.row} * num_heads + at.head);
  };
}

} // namespace assay::bench
