// SPDX-License-Identifier: Apache-2.0
#include "fuzz/bound_checks.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "fuzz/byte_reader.h"
#include "kernels/abi/kernel_table.h"
#include "oracle/exact/dtype.h"
#include "oracle/judge/verdict.h"
#include "properties/call/materialise.h"
#include "properties/case/case_text.h"
#include "properties/case/codec.h"
#include "properties/relate/budget.h"

namespace assay::fuzz {
namespace {

using oracle::test::Emulation;

/// A few element values and how they are laid out over (token, dim): element (j, i) is value
/// (a j + b i) mod count. Bit patterns, so that subnormals, the largest values and everything
/// between are as likely as small numbers.
class Palette {
public:
  explicit Palette(ByteReader &in) {
    count_ = in.integer(1, 8);
    a_ = in.integer(0, 7);
    b_ = in.integer(0, 7);
    for (int i = 0; i < count_; ++i)
      values_[i] = in.byte();
  }

  /// Below 128: multiples of 1/8 from -8 to 7 7/8. From 128 on: the exponents of the format in 32
  /// steps, the significand all zeros or all ones, both signs.
  uint16_t bits(assay_dtype dtype, int j, int i) const {
    const uint8_t code = values_[(a_ * j + b_ * i) % count_];
    if (code < 128) {
      uint16_t out = 0;
      oracle::store_element(dtype, &out, 0, static_cast<float>(code - 64) / 8);
      return out;
    }
    const int fraction = oracle::format_of(dtype).mantissa_bits;
    const int exponents = (1 << (15 - fraction)) - 1; // the last one is infinity and NaN
    const int exponent = (code & 31) * (exponents - 1) / 31;
    const int significand = code & 32 ? (1 << fraction) - 1 : 0;
    return static_cast<uint16_t>((code & 64) << 9 | exponent << fraction | significand);
  }
  float value(assay_dtype dtype, int j, int i) const {
    const uint16_t pattern = bits(dtype, j, i);
    return oracle::load_element(dtype, &pattern, 0);
  }

private:
  int count_, a_, b_;
  std::array<uint8_t, 8> values_{};
};

std::string describe(const oracle::Report &report, const char *what) {
  const oracle::ElementReport &e = report.worst;
  char text[320];
  std::snprintf(text, sizeof text,
                "%s: dim %d tier %d got %.9g exact %.12g +- %.3g allowed %.3g ratio %.6g %s", what,
                e.dim, e.tier, static_cast<double>(e.got), e.reference.mid, e.reference.rad,
                e.budget.total, e.ratio, reason_text(e.reason));
  return text;
}

void shrink_budgets(oracle::RowReference &row, double factor) {
  for (auto *terms : {&row.t0, &row.t1.budget, &row.t2.budget})
    for (oracle::BudgetTerms &t : *terms)
      t.total *= factor;
  row.lse_budget *= factor;
  row.t2.lse_budget *= factor;
}

float scale_of(int code, int d) {
  const float inverse_root = 1.0f / std::sqrt(static_cast<float>(d));
  const float scales[] = {inverse_root,         1.0f,     0.0866434f, 1e-3f, 16.0f,
                          0.25f * inverse_root, 0x1p-20f, 1000.0f};
  return scales[code];
}

Emulation read_emulation(ByteReader &in) {
  Emulation e;
  const int arithmetic = in.integer(0, 3);
  if (arithmetic == 2) e.block = 8, e.fraction_bits = 24;
  if (arithmetic == 3) e.block = 0;
  e.tile = 8 << in.integer(0, 3);
  e.states = in.integer(1, 8);
  e.combine = in.integer(0, 1) != 0;
  e.stages = e.combine ? in.integer(1, 2) : 1;
  e.maxima = static_cast<oracle::test::Maxima>(in.integer(0, 3));
  e.low_subnormals = in.integer(0, 1) != 0;
  e.noise = static_cast<oracle::test::Noise>(in.integer(0, 3));
  e.seed = in.byte();
  return e;
}

/// Errors of 2^-22 to 2^-4, declared and used up. Last of what is read: older inputs have none.
void read_errors(ByteReader &in, Emulation &e) {
  if (in.integer(0, 1) == 0) return;
  e.exp2_error = std::ldexp(1.0, -4 - in.integer(0, 18));
  e.log2_error = std::ldexp(1.0, -4 - in.integer(0, 18));
  e.rcp_error = std::ldexp(1.0, -4 - in.integer(0, 18));
  e.noise = static_cast<oracle::test::Noise>(in.integer(1, 4));
  e.tile = 1 << in.integer(0, 8);
}

/// Formats, as read_errors() does.
void read_formats(ByteReader &in, Emulation &e) {
  if (in.integer(0, 1) == 0) return;
  constexpr assay_format kSums[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
  e.p_format = in.integer(ASSAY_FORMAT_FP32, ASSAY_FORMAT_E5M2);
  e.sum_format = kSums[in.integer(0, 2)];
  e.natural = in.integer(0, 1) != 0;
  if (in.integer(0, 3) == 0) e.unit_q_format = in.integer(ASSAY_FORMAT_FP16, ASSAY_FORMAT_E5M2);
  e.seed |= static_cast<uint64_t>(in.byte()) << 20; // what a kernel rounds and converts
}

/// Formats of products and O, as read_errors() does.
void read_products(ByteReader &in, Emulation &e) {
  if (in.integer(0, 1) == 0) return;
  e.q_format = in.integer(ASSAY_FORMAT_FP32, ASSAY_FORMAT_TF32);
  e.product_format = in.integer(ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16);
  e.qk_sum_format = in.integer(ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16);
  e.output_format = in.integer(ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16);
  e.seed |= static_cast<uint64_t>(in.byte()) << 40;
}

std::string check_emulated(ByteReader &in, const BoundSabotage &sabotage) {
  const assay_dtype dtype = in.integer(0, 1) ? ASSAY_FP16 : ASSAY_BF16;
  const int d = 16 << in.integer(0, 2), n = in.integer(1, 96);
  const float sm_scale = scale_of(in.integer(0, 7), d);
  const assay_lse_base base = in.integer(0, 1) ? ASSAY_LSE_BASE_2 : ASSAY_LSE_BASE_E;
  Emulation emulation = read_emulation(in);
  const int splits = emulation.combine ? in.integer(1, 8) : 1;
  const Palette q(in), k(in), v(in);
  read_errors(in, emulation);
  read_formats(in, emulation);
  read_products(in, emulation);
  oracle::KeySet keys;
  keys.head_dim = d;
  std::vector<float> query;
  for (int i = 0; i < d; ++i)
    query.push_back(q.value(dtype, 0, i));
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < d; ++i) {
      keys.k.push_back(k.value(dtype, j, i));
      keys.v.push_back(v.value(dtype, j, i));
    }
  keys.finish(dtype);
  const oracle::TileOrder order =
      oracle::test::deal_tiles(n, emulation.tile, splits, emulation.states);
  oracle::RowProblem problem;
  problem.q = query;
  problem.keys = &keys;
  problem.dtype = dtype;
  problem.sm_scale = sm_scale;
  problem.lse_base = base;
  problem.arithmetic = declared(emulation);
  problem.max_splits = splits;
  problem.combine_stages = emulation.combine ? emulation.stages : 0;
  // The bit replay follows one convention for subnormal operands; the other bounds cover both.
  problem.replay_scores = emulation.low_subnormals && emulation.block > 0 &&
                          emulation.unit_q_format == ASSAY_FORMAT_FP32;
  emulation.mutant = sabotage.mutant;
  const oracle::test::RowOutput out =
      oracle::test::emulate_row(query, keys, dtype, sm_scale, base, order, emulation);
  for (const oracle::TileOrder *known : {static_cast<const oracle::TileOrder *>(nullptr), &order}) {
    problem.order = known;
    oracle::RowReference row = oracle::attention_row(problem);
    if (sabotage.budget != 1) shrink_budgets(row, sabotage.budget);
    const oracle::Report report = oracle::judge_row(problem, row, out.o.data(), &out.lse, 0, 0);
    if (report.verdict != oracle::Verdict::kInside)
      return describe(report, known ? "emulated kernel, order declared" : "emulated kernel");
  }
  return "";
}

/// Writes the palettes over the values that the case drew.
void fill(Tensors &t, const Palette &q, const Palette &k, const Palette &v) {
  const Problem &p = t.problem;
  const auto dtype = static_cast<assay_dtype>(p.dtype);
  for (int row = 0; row < t.rows(); ++row)
    for (int head = 0; head < t.heads(); ++head)
      for (int i = 0; i < p.head_dim; ++i)
        t.set_bits(t.q, row, head, i, q.bits(dtype, row + head, i));
  for (size_t c = 0; c < t.caches.size(); ++c)
    for (int row = 0; row < t.caches[c].rows; ++row)
      for (int j = 0; j < t.caches[c].len[row]; ++j)
        for (int head = 0; head < p.num_kv_heads; ++head)
          for (int i = 0; i < p.head_dim; ++i) {
            t.set_key(static_cast<int>(c), row, j, head, i, k.bits(dtype, j + head, i));
            t.set_val(static_cast<int>(c), row, j, head, i, v.bits(dtype, j + head, i));
          }
}

std::string check_kernels(const assay_plugin &plugin, ByteReader &in, bool replay_scores) {
  const bool cascade = in.integer(0, 1) != 0;
  const bool palettes = in.integer(0, 3) != 0; // else the case's own regimes
  const Palette q(in), k(in), v(in);
  const Problem p =
      decode_family(in.rest(), fuzz_limits(), cascade ? Family::kCascade : Family::kPaged);
  for (const assay_kernel &kernel : kernels_in(plugin)) {
    if (kernel.target != ASSAY_TARGET_SIMT || kernel.family != static_cast<assay_family>(p.family))
      continue;
    auto sut = make_simt_sut(kernel);
    sut->set_replays_scores(replay_scores);
    Tensors t = materialise(p);
    if (palettes) fill(t, q, k, v);
    const Outcome run = run_tensors(std::move(t), *sut);
    CheckResult result = run.check;
    if (run.ok()) result = inside_budget(run, *sut);
    if (result.passed() || result.kind == CheckResult::Kind::kDiscard) continue;
    return std::string(kernel.name) + ": " + result.message + "\n" + result.detail +
           format_problem(p);
  }
  return "";
}

} // namespace

std::string check_bound_with(const assay_plugin &plugin, Input input, bool replay_scores,
                             const BoundSabotage &sabotage) {
  ByteReader in(input);
  return in.integer(0, 1) ? check_kernels(plugin, in, replay_scores) : check_emulated(in, sabotage);
}

} // namespace assay::fuzz
