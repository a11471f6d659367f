// SPDX-License-Identifier: Apache-2.0
#include "oracle/bounds/arithmetic_fields.h"

namespace assay::oracle {
namespace {

using A = assay_arithmetic;

constexpr const char *kFormats[] = {"fp32", "call", "fp16", "bf16", "e4m3", "e5m2", "tf32"};
constexpr const char *kFormatsBestFirst[] = {"fp32", "fp16", "tf32", "call",
                                             "bf16", "e4m3", "e5m2"};
constexpr const char *kStoredBestFirst[] = {"fp32", "fp16", "call", "bf16"};
constexpr const char *kSumsBestFirst[] = {"fp32", "call", "fp16", "bf16"};
constexpr const char *kExponentials[] = {"natural", "base2"};
constexpr const char *kExponentialsBestFirst[] = {"base2", "natural"};
constexpr const char *kAccumulators[] = {"fp32", "fp64"};
constexpr const char *kAccumulatorsBestFirst[] = {"fp64", "fp32"};

using Words = std::span<const char *const>;

constexpr ArithmeticField count(const char *name, int32_t A::*field, int32_t most,
                                Wider wider = Wider::kMore) {
  return {name, field, nullptr, most, {}, wider};
}
constexpr ArithmeticField word(const char *name, int32_t A::*field, Words words, Words best_first) {
  const auto most = static_cast<int32_t>(words.size()) - 1;
  return {name, field, nullptr, most, words, Wider::kWords, best_first};
}
/// A format that O or a score is stored in, which is none of fp8's.
constexpr ArithmeticField format(const char *name, int32_t A::*field, Words best_first) {
  return word(name, field, Words(kFormats).first(ASSAY_FORMAT_BF16 + 1), best_first);
}
constexpr ArithmeticField error(const char *name, double A::*field) {
  return {name, nullptr, field, 0, {}};
}

constexpr ArithmeticField later(ArithmeticField field) {
  field.later = true;
  return field;
}

constexpr ArithmeticField kFields[] = {
    count("mma_block", &A::mma_block, 1024, Wider::kAny),
    count("mma_fraction_bits", &A::mma_fraction_bits, 1022, Wider::kLess), // 2^-F normal in double
    word("p_format", &A::p_format, kFormats, kFormatsBestFirst),
    format("sum_format", &A::sum_format, kSumsBestFirst),
    word("exponential", &A::exponential, kExponentials, kExponentialsBestFirst),
    count("sum_depth", &A::sum_depth, 1 << 20), // so many fp32 roundings: 1/16
    error("q_abs_error", &A::q_abs_error),
    error("exp2_rel_error", &A::exp2_rel_error),
    error("log2_abs_error", &A::log2_abs_error),
    error("rcp_rel_error", &A::rcp_rel_error),
    error("tanh_abs_error", &A::tanh_abs_error),
    // Each tile may rescale what was summed.
    count("tile_tokens", &A::tile_tokens, 1 << 30, Wider::kLess),
    count("max_parallel_states", &A::max_parallel_states, 1 << 20),
    count("max_splits", &A::max_splits, 1 << 16),
    count("merge_stages", &A::merge_stages, 16),
    later(format("partial_format", &A::partial_format, kStoredBestFirst)),
    later(count("stored_merges", &A::stored_merges, 16)),
    later(format("score_format", &A::score_format, kStoredBestFirst)),
    // 1 stays finite in e5m2. Scaled weights have fewer subnormals.
    later(count("p_scale_log2", &A::p_scale_log2, 15, Wider::kLess)),
    later(count("rounded_before_scale", &A::rounded_before_scale, 1)),
    later(word("accumulator", &A::accumulator, kAccumulators, kAccumulatorsBestFirst)),
    // It takes all words but those of fp8, which declaration.cpp refuses.
    later(word("kv_format", &A::kv_format, kFormats, Words(kFormatsBestFirst).first(5))),
    later(word("q_format", &A::q_format, kFormats, kFormatsBestFirst)),
    later(format("product_format", &A::product_format, kStoredBestFirst)),
    later(format("qk_sum_format", &A::qk_sum_format, kStoredBestFirst)),
    later(format("output_format", &A::output_format, kStoredBestFirst)),
};
static_assert(offsetof(A, reserved) == 21 * sizeof(int32_t) + 5 * sizeof(double) &&
                  std::size(kFields) == 26,
              "a new field needs its row here, its text in plugin.h and a case in the test");

} // namespace

std::span<const ArithmeticField> arithmetic_fields() { return kFields; }

const ArithmeticField *arithmetic_field(std::string_view name) {
  for (const ArithmeticField &field : kFields)
    if (field.name == name) return &field;
  return nullptr;
}

} // namespace assay::oracle
