// SPDX-License-Identifier: Apache-2.0
#include "properties/call/feature_arrays.h"

#include "properties/call/buffers.h"
#include "properties/call/values.h"

namespace assay {
namespace {

std::vector<float> values_of(const Problem &p, int count, float (*value)(const Problem &, int)) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(value(p, i));
  return values;
}

template <auto kField>
void pass(assay_paged_params &to, const void *array) {
  to.*kField = static_cast<std::decay_t<decltype(to.*kField)>>(array);
}

template <auto kField>
int add_floats_of(Tensors &t, const char *name, int count, float (*value)(const Problem &, int)) {
  const int buffer = add_floats(t, name, values_of(t.problem, count, value));
  t.feature_arrays.push_back({buffer, pass<kField>});
  return buffer;
}

int scales(const Problem &p, ScaleLayout layout) {
  return layout == ScaleLayout::kHead ? p.num_kv_heads : 1;
}

/// [batch + 1] the first token of each request, and the end.
std::vector<int> query_starts(const Problem &p) {
  std::vector<int> starts;
  for (int request = 0; request <= p.batch; ++request)
    starts.push_back(first_query_token(p) + row_of(p, {request, 0}));
  return starts;
}

std::vector<int> global_lens(const Problem &p) {
  std::vector<int> lens;
  for (int request = 0; request < p.batch; ++request)
    lens.push_back(global_tokens(p, request));
  return lens;
}

} // namespace

void add_feature_arrays(Tensors &t) {
  using Params = assay_paged_params;
  const Problem &p = t.problem;
  if (p.k_scale != ScaleLayout::kNone)
    t.k_scale = add_floats_of<&Params::k_scale>(t, "k_scale", scales(p, p.k_scale), key_scale_of);
  if (p.v_scale != ScaleLayout::kNone)
    t.v_scale = add_floats_of<&Params::v_scale>(t, "v_scale", scales(p, p.v_scale), value_scale_of);
  if (p.alibi != Alibi::kNone)
    t.slopes = add_floats_of<&Params::alibi_slopes>(t, "alibi_slopes", t.heads(), slope_of);
  if (p.sinks != Sinks::kNone)
    t.sinks = add_floats_of<&Params::sinks>(t, "sinks", t.heads(), sink_of);
  if (!p.query_tokens.empty())
    t.feature_arrays.push_back(
        {add_ints(t, "qo_indptr", query_starts(p)), pass<&Params::qo_indptr>});
  if (!p.foreign_tokens.empty())
    t.feature_arrays.push_back(
        {add_ints(t, "global_lens", global_lens(p)), pass<&Params::global_lens>});
}

} // namespace assay
