// SPDX-License-Identifier: Apache-2.0
// oracle_campaign [OUTPUTS [SEED [FIELD [THREADS]]]]: random correct kernels in all regimes against
// all tiers, until that many outputs were judged, by so many threads (0: one for each core). Half
// of them declare, and use up, exponentials, logarithms and reciprocals with errors of up to 2^-4
// ("wide errors"); half round P, row sum, Q, products and O to any format, or work in the natural
// base ("formats"); a quarter has tensors of fp32, most of which they take as tf32 or bf16. With
// FIELD (q_format, product_format, qk_sum_format, output_format or tf32; all: none of them) every
// case has it. Prints the worst |error| / bound of each tier, also of the cases that have a field,
// and how sharp T1 is, and every 10 s how far it is. Exits with 1 on any violation or undecided
// output.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "oracle/tests/campaign.h"

namespace assay::oracle::test {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_row(const char *name, const Tally &t) {
  printf("%-13s %11lu %10lu %10lu %9.4f %8.4f %8.4f %8.4f %8.4f\n", name, t.outputs, t.violations,
         t.no_claim, t.t0, t.t1, t.t2, t.lse, t.row);
}

constexpr const char *kFields[] = {"all",           "q_format",      "product_format",
                                   "qk_sum_format", "output_format", "tf32"};

/// Gives a case the field of that name, if it does not have it.
void give_field(const std::string &name, Case &c, std::mt19937_64 &random) {
  Emulation &e = c.emulation;
  const auto format = static_cast<assay_format>(ASSAY_FORMAT_CALL + random() % 3);
  const auto give = [](assay_format &field, assay_format value) {
    if (field == ASSAY_FORMAT_FP32) field = value;
  };
  if (name == "q_format") give(e.q_format, format);
  if (name == "product_format") give(e.product_format, format);
  if (name == "qk_sum_format") give(e.qk_sum_format, format);
  if (name == "output_format") give(e.output_format, format);
  if (name != "tf32") return;
  if (c.dtype != ASSAY_FP32) widen_tensors(c, random);
  e.kv_format = ASSAY_FORMAT_TF32;
  give(e.q_format, ASSAY_FORMAT_TF32);
}

/// What the formats of an emulation are called.
std::vector<const char *> fields_of(const Case &c) {
  const Emulation &e = c.emulation;
  std::vector<const char *> names;
  if (e.q_format != ASSAY_FORMAT_FP32) names.push_back("q_format");
  if (e.product_format != ASSAY_FORMAT_FP32) names.push_back("product");
  if (e.qk_sum_format != ASSAY_FORMAT_FP32) names.push_back("qk_sum");
  if (e.output_format != ASSAY_FORMAT_FP32) names.push_back("output");
  if (e.q_format == ASSAY_FORMAT_TF32) names.push_back("q tf32");
  if (e.p_format == ASSAY_FORMAT_TF32) names.push_back("P tf32");
  if (c.dtype == ASSAY_FP32) names.push_back("fp32 tensors");
  if (c.dtype == ASSAY_FP32 && e.kv_format == ASSAY_FORMAT_TF32) names.push_back("K, V tf32");
  return names;
}

/// Median of T0 / T1 over the outputs of bf16 N(0,1) rows of 1,000 to 4,096 keys.
double median_sharpness(uint64_t seed) {
  std::vector<double> ratios;
  for (uint64_t number = 0; number < 64; ++number) {
    std::mt19937_64 random(seed * 7919 + number);
    const auto pick = [&](int limit) {
      return static_cast<int>(random() % static_cast<uint64_t>(limit));
    };
    Case c;
    const int n = 1000 + pick(3097);
    c.row = draw_row(Regime::kNormal, ASSAY_BF16, n, 128, random);
    c.sm_scale = 1.0f / std::sqrt(128.0f);
    c.emulation.tile = 16 << pick(3);
    c.emulation.states = 1 << pick(3);
    c.splits = 1 + pick(8);
    c.order = deal_tiles(n, c.emulation.tile, c.splits, c.emulation.states, c.emulation.p_parts);
    const RowReference row = attention_row(c.problem(true));
    for (size_t i = 0; i < row.o.size(); ++i)
      ratios.push_back(row.t0[i].total / row.t1.budget[i].total);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<int64_t>(ratios.size() / 2),
                   ratios.end());
  return ratios[ratios.size() / 2];
}

/// What a thread, and then all of them, have judged.
struct Results {
  std::map<Regime, Tally> regimes;
  std::map<std::string, Tally> fields;
  Tally all, wide_errors, formats;
  uint64_t cases = 0;

  void add(const Results &o) {
    for (const auto &[regime, t] : o.regimes)
      regimes[regime].add(t);
    for (const auto &[name, t] : o.fields)
      fields[name].add(t);
    all.add(o.all);
    wide_errors.add(o.wide_errors);
    formats.add(o.formats);
    cases += o.cases;
  }
};

void print_violation(const Case &c, uint64_t number, uint64_t seed, bool with_order,
                     const ElementReport &e) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  printf("VIOLATION case %lu seed %lu regime %s dim %d tier %d got %.9g exact %.12g allowed "
         "%.3g ratio %.6f\n",
         number, seed, regime_name(c.regime), e.dim, e.tier, e.got, e.reference.mid, e.budget.total,
         e.ratio);
  const Emulation &m = c.emulation;
  printf("  n %zu splits %d states %d stages %d tile %d block %d parts %d maxima %d noise %d "
         "exp2 %.2g log2 %.2g rcp %.2g order %d p %d sum %d q %d natural %d\n"
         "  dtype %d seed %lx q %d product %d qk sum %d score %d output %d kv %d\n",
         c.row.keys.size(), c.splits, m.states, m.stages, m.tile, m.block, m.p_parts,
         static_cast<int>(m.maxima), static_cast<int>(m.noise), m.exp2_error, m.log2_error,
         m.rcp_error, with_order, m.p_format, m.sum_format, m.unit_q_format, m.natural, c.dtype,
         m.seed, m.q_format, m.product_format, m.qk_sum_format, m.score_format, m.output_format,
         m.kv_format);
}

/// Case `number` of a seed; returns how many outputs it had.
uint64_t judge_case(uint64_t number, uint64_t seed, const std::string &field, Results &results) {
  std::mt19937_64 random(seed * 1000000007 + number);
  Case c = draw_case(random, 500);
  const bool wide = number % 2 == 1, narrow = number / 2 % 2 == 1;
  if (wide) widen_errors(c, random);
  if (narrow) vary_formats(c, random);
  if (number / 4 % 4 == 3) widen_tensors(c, random);
  give_field(field, c, random);
  const RowOutput out = c.run();
  const uint64_t before = results.all.outputs;
  for (bool with_order : {false, true}) {
    const Report report = c.judge(out, with_order);
    results.regimes[c.regime].add(report);
    if (wide) results.wide_errors.add(report);
    if (narrow) results.formats.add(report);
    for (const char *name : fields_of(c))
      results.fields[name].add(report);
    results.all.add(report);
    if (report.verdict != Verdict::kInside)
      print_violation(c, number, seed, with_order, report.worst);
  }
  ++results.cases;
  return results.all.outputs - before;
}

/// Threads take cases in their order until there are enough outputs.
Results judge_cases(uint64_t outputs, uint64_t seed, const std::string &field, int threads) {
  std::atomic<uint64_t> next = 0, judged = 0;
  std::mutex mutex;
  Results all;
  const auto work = [&] {
    Results own;
    while (judged < outputs)
      judged += judge_case(next++, seed, field, own);
    const std::lock_guard lock(mutex);
    all.add(own);
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back(work);
  const auto start = std::chrono::steady_clock::now();
  for (int ticks = 1; judged < outputs; ++ticks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (ticks % 100 == 0)
      fprintf(stderr, "%lu of %lu outputs, %.0f s\n", judged.load(), outputs, seconds_since(start));
  }
  workers.clear();
  return all;
}

int run(uint64_t outputs, uint64_t seed, const std::string &field, int threads) {
  const auto start = std::chrono::steady_clock::now();
  if (std::ranges::find(kFields, field) == std::end(kFields)) return 2;
  const Results results = judge_cases(outputs, seed, field, threads);
  printf("%-13s %11s %10s %10s %9s %8s %8s %8s %8s\n", "regime", "outputs", "violations",
         "no claim", "worst T0", "T1", "T2", "LSE", "row");
  for (const auto &[regime, t] : results.regimes)
    print_row(regime_name(regime), t);
  print_row("wide errors", results.wide_errors);
  print_row("formats", results.formats);
  for (const auto &[name, t] : results.fields)
    print_row(name.c_str(), t);
  const Tally &all = results.all;
  print_row("all", all);
  printf("%lu rows, each judged with and without its order; %lu undecided; seed %lu; %.0f s\n",
         results.cases, all.undecided, seed, seconds_since(start));
  printf("median T0/T1, bf16, N(0,1), 1,000 to 4,096 keys, d 128: %.1f\n", median_sharpness(seed));
  const bool every_regime = results.regimes.size() == static_cast<size_t>(Regime::kCount);
  return all.violations == 0 && all.undecided == 0 && every_regime ? 0 : 1;
}

} // namespace
} // namespace assay::oracle::test

int main(int argc, char **argv) {
  const uint64_t outputs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const int threads = argc > 4 ? std::atoi(argv[4]) : 0;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return assay::oracle::test::run(outputs, seed, argc > 3 ? argv[3] : "all",
                                  threads > 0 ? threads : std::max(cores, 1));
}
