// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/arithmetic_fields.h"

namespace assay::oracle {
namespace {

using A = assay_arithmetic;

constexpr const char *kFormats[] = {"fp32", "call", "fp16", "bf16", "e4m3", "e5m2"};
constexpr const char *kExponentials[] = {"natural", "base2"};
constexpr const char *kAccumulators[] = {"fp32", "fp64"};

constexpr ArithmeticField count(const char *name, int32_t A::*field, int32_t most) {
  return {name, field, nullptr, most, {}};
}
template <size_t n>
constexpr ArithmeticField word(const char *name, int32_t A::*field, const char *const (&words)[n],
                               int32_t most = n - 1) {
  return {name, field, nullptr, most, std::span(words).first(static_cast<size_t>(most) + 1)};
}
constexpr ArithmeticField error(const char *name, double A::*field) {
  return {name, nullptr, field, 0, {}};
}

constexpr ArithmeticField later(ArithmeticField field) {
  field.later = true;
  return field;
}

constexpr ArithmeticField kFields[] = {
    count("mma_block", &A::mma_block, 1024),
    count("mma_fraction_bits", &A::mma_fraction_bits, 1022), // 2^-F normal in double
    word("p_format", &A::p_format, kFormats),
    word("sum_format", &A::sum_format, kFormats, ASSAY_FORMAT_BF16),
    word("exponential", &A::exponential, kExponentials),
    count("sum_depth", &A::sum_depth, 1 << 20), // so many fp32 roundings: 1/16
    error("q_abs_error", &A::q_abs_error),
    error("exp2_rel_error", &A::exp2_rel_error),
    error("log2_abs_error", &A::log2_abs_error),
    error("rcp_rel_error", &A::rcp_rel_error),
    error("tanh_abs_error", &A::tanh_abs_error),
    count("tile_tokens", &A::tile_tokens, 1 << 30),
    count("max_parallel_states", &A::max_parallel_states, 1 << 20),
    count("max_splits", &A::max_splits, 1 << 16),
    count("merge_stages", &A::merge_stages, 16),
    later(word("partial_format", &A::partial_format, kFormats, ASSAY_FORMAT_BF16)),
    later(count("stored_merges", &A::stored_merges, 16)),
    later(word("score_format", &A::score_format, kFormats, ASSAY_FORMAT_BF16)),
    later(count("p_scale_log2", &A::p_scale_log2, 15)), // 1 stays finite in e5m2
    later(count("rounded_before_scale", &A::rounded_before_scale, 1)),
    later(word("accumulator", &A::accumulator, kAccumulators)),
    later(word("kv_format", &A::kv_format, kFormats, ASSAY_FORMAT_BF16)),
};
static_assert(sizeof(A) == 18 * sizeof(int32_t) + 5 * sizeof(double) && std::size(kFields) == 22,
              "a new field needs its row here, its text in plugin.h and a case in the test");

} // namespace

std::span<const ArithmeticField> arithmetic_fields() { return kFields; }

const ArithmeticField *arithmetic_field(std::string_view name) {
  for (const ArithmeticField &field : kFields)
    if (field.name == name) return &field;
  return nullptr;
}

} // namespace assay::oracle
