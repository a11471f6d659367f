// SPDX-License-Identifier: Apache-2.0
// oracle_call_campaign gpu|here [OUTPUTS [SEED [THREADS]]]: calls of random correct kernels in all
// regimes (emulated_call.h), judged by the bodies that a GPU runs, until those have judged that
// many outputs. A call in 16 is held against the host, bound by bound. Prints the largest |error| /
// bound of each tier and how the bounds compare. Exits with 1 on a violation, an undecided output,
// a claim, an enclosure or a row inside that the host does not share, and where nothing was
// compared.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "oracle/tests/call_campaign.h"

namespace assay::oracle::test {
namespace {

constexpr uint64_t kCompareEvery = 16;

CallTally run(Bodies::Where where, uint64_t outputs, uint64_t seed, int threads) {
  CallTally all;
  std::mutex mutex;
  std::atomic<uint64_t> next = 0, judged = 0;
  const auto work = [&] {
    CallTally own;
    try {
      Bodies bodies(where);
      while (judged < outputs) {
        const uint64_t number = next++, before = own.judged;
        judge_drawn_call(bodies, seed, number, number % kCompareEvery == 0, own);
        judged += own.judged - before;
      }
    } catch (const std::exception &e) {
      ++own.violations;
      own.wrong["stopped"].push_back(e.what());
      judged = outputs;
    }
    const std::lock_guard lock(mutex);
    all.add(own);
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back(work);
  for (std::thread &worker : workers)
    worker.join();
  return all;
}

using Number = unsigned long long;

int print(const CallTally &t, uint64_t seed, double seconds) {
  for (const auto &[kind, lines] : t.wrong)
    for (const std::string &line : lines)
      std::printf("%s: %s\n", kind.c_str(), line.c_str());
  std::printf("%llu outputs judged (wide errors %llu, formats %llu) of %llu emulated in %llu calls "
              "of %llu rows and heads; %llu calls refused, %llu rows left to the host\n",
              static_cast<Number>(t.judged), static_cast<Number>(t.wide),
              static_cast<Number>(t.formats), static_cast<Number>(t.emulated),
              static_cast<Number>(t.calls), static_cast<Number>(t.rows),
              static_cast<Number>(t.refused), static_cast<Number>(t.host_rows));
  std::printf("%llu violations, %llu undecided, %llu without a claim; largest |error| / bound T0 "
              "%.4f T1 %.4f T2 %.4f LSE %.4f, rows as one %.4f (%llu nearly outside)\n",
              static_cast<Number>(t.violations), static_cast<Number>(t.undecided),
              static_cast<Number>(t.no_claim), t.t0, t.t1, t.t2, t.lse, t.row,
              static_cast<Number>(t.near));
  std::printf("%llu bounds and %llu rows as one held against the host's, %llu apart, %llu without "
              "a claim there alone; "
              "budgets of the first tier %.12f to "
              "%.12f of the host's, of the tiers %.12f to %.12f\n",
              static_cast<Number>(t.compared), static_cast<Number>(t.as_one),
              static_cast<Number>(t.apart), static_cast<Number>(t.fewer_claims), t.least_first,
              t.most_first, t.least_tiers, t.most_tiers);
  if (!t.widest_first.empty())
    std::printf("widest of the first tier: %s\n", t.widest_first.c_str());
  std::printf("%llu bounds more than 1e-3 wider than the host's, %llu more than 1e-6 narrower\n",
              static_cast<Number>(t.wider), static_cast<Number>(t.narrower));
  std::printf("seed %llu, %.0f s\n", static_cast<Number>(seed), seconds);
  return t.sound() && t.compared > 0 ? 0 : 1;
}

} // namespace
} // namespace assay::oracle::test

int main(int argc, char **argv) {
  using namespace assay::oracle::test;
  const bool gpu = argc > 1 && std::strcmp(argv[1], "gpu") == 0;
  if (!gpu && (argc < 2 || std::strcmp(argv[1], "here") != 0)) {
    std::fprintf(stderr, "usage: oracle_call_campaign gpu|here [OUTPUTS [SEED [THREADS]]]\n");
    return 2;
  }
  const uint64_t outputs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000000;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const int threads = argc > 4 ? std::atoi(argv[4]) : 1;
  const auto start = std::chrono::steady_clock::now();
  const CallTally tally =
      run(gpu ? Bodies::Where::kGpu : Bodies::Where::kHere, outputs, seed, threads);
  return print(tally, seed,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}
