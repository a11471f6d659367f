// SPDX-License-Identifier: Apache-2.0
// exchange_bench: exchange_states between the GPUs of one host, in CUDA graphs, beside NCCL with
// merge_states behind it; decode of one request that is cut along its keys; and exchanges with
// random delays, each compared with merge_states bit by bit.
#include "kernels/bench/ranks/exchange_data.cuh"
#include "kernels/bench/ranks/sharded_decode.cuh"
#include "kernels/bench/today.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <optional>

namespace assay::bench {
namespace {

using Json = nlohmann::json;

struct Options {
  int ranks = 2;
  std::string nccl, json;
  int64_t endurance = 0;
};

constexpr int kLaunches = 200, kReplays = 21;

const char *name_of(assay_dtype dtype) { return dtype == ASSAY_FP32 ? "fp32" : "bf16"; }
const char *name_of_heads(assay_exchange_heads heads) {
  return heads == ASSAY_EXCHANGE_ALL ? "all" : "scatter";
}

/// Checked after it was timed: the latest outputs have the bits of merge_states.
Json time_cell(const Ranks &ranks, const ExchangeCell &cell, const Nccl *nccl) {
  const ExchangeData data(ranks, cell);
  const std::string name = fmt::format("{} {}", name_of(cell.dtype), name_of_heads(cell.heads));
  Json json = {{"cell", fmt::format("{} b{}", name, cell.rows)},
               {"dtype", name_of(cell.dtype)},
               {"heads", name_of_heads(cell.heads)},
               {"rows", cell.rows},
               {"num_heads", cell.num_heads},
               {"head_dim", cell.head_dim}};
  for (const bool early : {false, true})
    json[early ? "early_us" : "us"] = ranks.median_us(
        kLaunches, kReplays, [&](int r, int i) { data.exchange(r, i % kStateSets, early); });
  ranks.each([&](int r) {
    for (int set = 0; set < kStateSets; ++set)
      data.compare(r, set);
    ASSAY_BENCH_CHECK(cudaDeviceSynchronize());
  });
  json["wrong_words"] = data.wrong_words();
  json["status"] = data.status();
  if (nccl != nullptr)
    for (const bool merge : {false, true})
      json[merge ? "nccl_merge_us" : "nccl_us"] = ranks.median_us(
          kLaunches / 4, kReplays, [&](int r, int) { data.with_nccl(r, *nccl, merge); });
  return json;
}

Json time_cells(const Ranks &ranks, const Nccl *nccl) {
  Json cells = Json::array();
  fmt::print("{:<14} {:>5} | {:>8} {:>8} | {:>8} {:>8} | wrong\n", "exchange", "rows", "us",
             "early", "NCCL", "+ merge");
  for (const auto &[dtype, heads] : {std::pair{ASSAY_BF16, ASSAY_EXCHANGE_SCATTER},
                                     {ASSAY_BF16, ASSAY_EXCHANGE_ALL},
                                     {ASSAY_FP32, ASSAY_EXCHANGE_SCATTER},
                                     {ASSAY_FP32, ASSAY_EXCHANGE_ALL}})
    for (const int rows : {1, 16, 64, 256}) {
      const Json cell = time_cell(
          ranks, {static_cast<assay_dtype>(dtype), static_cast<assay_exchange_heads>(heads), rows},
          nccl);
      fmt::print("{:<14} {:>5} | {:>8.2f} {:>8.2f} | {:>8.2f} {:>8.2f} | {}\n",
                 std::string(name_of(dtype)) + " " + name_of_heads(heads), rows,
                 cell["us"].get<double>(), cell["early_us"].get<double>(),
                 cell.value("nccl_us", 0.0), cell.value("nccl_merge_us", 0.0),
                 cell["wrong_words"].get<uint64_t>());
      std::fflush(stdout);
      cells.push_back(cell);
    }
  return cells;
}

/// All keys on one GPU, and a part on each with an exchange behind it.
Json time_decode(const Ranks &ranks) {
  const DecodeCell cell;
  const ShardedDecode decode(ranks, cell);
  Json json = {{"keys", cell.keys}};
  for (const bool early : {false, true}) {
    const auto us = [&](bool part, bool exchange) {
      return ranks.median_us(kLaunches / 4, kReplays, [&](int r, int) {
        decode.attend(r, part, early);
        if (exchange) decode.exchange(r, early);
      });
    };
    const double whole = us(false, false), part = us(true, false), sharded = us(true, true);
    fmt::print("decode of {} keys, early start {}: one GPU {:.2f} us, a part alone {:.2f}, {} GPUs "
               "{:.2f} ({:.3f})\n",
               cell.keys, early, whole, part, ranks.count(), sharded, sharded / whole);
    json[early ? "early" : "late"] = {
        {"whole_us", whole}, {"part_us", part}, {"sharded_us", sharded}};
  }
  return json;
}

/// At least `exchanges` of each shape, with jitter on every rank, each compared.
Json endure(const Ranks &ranks, int64_t exchanges) {
  constexpr int kInGraph = 40; // a multiple of kStateSets
  constexpr uint32_t kMostNs = 8000;
  Json shapes = Json::array();
  for (const auto heads : {ASSAY_EXCHANGE_SCATTER, ASSAY_EXCHANGE_ALL})
    for (const int rows : {1, 7, 64}) {
      const ExchangeData data(ranks, {ASSAY_BF16, static_cast<assay_exchange_heads>(heads), rows});
      const int64_t replays = (exchanges + kInGraph - 1) / kInGraph;
      ranks.each([&](int r) {
        const DeviceArray<uint32_t> random(
            std::vector<uint32_t>{static_cast<uint32_t>(77 * r + rows)});
        const Stream &stream = ranks.stream(r);
        const Graph graph(
            stream, kInGraph,
            [&](int i) {
              enqueue_jitter(stream.get(), random.get(), kMostNs);
              data.exchange(r, i % kStateSets, false);
              data.compare(r, i % kStateSets);
            },
            cudaStreamCaptureModeThreadLocal);
        for (int64_t i = 0; i < replays; ++i)
          graph.replay_us();
      });
      const Json shape = {{"heads", name_of_heads(heads)},
                          {"rows", rows},
                          {"exchanges", replays * kInGraph},
                          {"wrong_words", data.wrong_words()},
                          {"status", data.status()}};
      fmt::print("{}\n", shape.dump());
      std::fflush(stdout);
      shapes.push_back(shape);
    }
  return shapes;
}

/// Rank 1 never comes: what rank 0 says, and when.
Json dead_peer(const Ranks &ranks) {
  constexpr uint64_t kTimeoutNs = 50'000'000;
  const ExchangeData data(ranks, {ASSAY_BF16, ASSAY_EXCHANGE_ALL, 64});
  double ms = 0;
  bool nan = false;
  ranks.each([&](int r) {
    if (r != 0) return;
    const auto begin = std::chrono::steady_clock::now();
    data.exchange(0, 0, false, kTimeoutNs);
    ASSAY_BENCH_CHECK(cudaDeviceSynchronize());
    ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    nan = data.all_nan(0, 0);
  });
  fmt::print("a dead peer: status {:#x} after {:.1f} ms of {:.0f}, all rows NaN: {}\n",
             data.status(), ms, kTimeoutNs * 1e-6, nan);
  return {
      {"timeout_ms", kTimeoutNs * 1e-6}, {"ms", ms}, {"status", data.status()}, {"all_nan", nan}};
}

int run(const Options &options) {
  const Ranks ranks(options.ranks);
  std::optional<Nccl> nccl;
  if (!options.nccl.empty()) nccl.emplace(options.nccl, options.ranks);
  cudaDeviceProp properties{};
  ASSAY_BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
  Json json = {{"device", properties.name},
               {"ranks", options.ranks},
               {"commit", ASSAY_COMMIT},
               {"date", today()}};
  fmt::print("{} GPUs, {}\n", options.ranks, properties.name);
  json["cells"] = time_cells(ranks, nccl ? &*nccl : nullptr);
  json["decode"] = time_decode(ranks);
  json["dead_peer"] = dead_peer(ranks);
  if (options.endurance > 0) json["endurance"] = endure(ranks, options.endurance);
  if (!options.json.empty()) std::ofstream(options.json) << json.dump(1) << '\n';
  return 0;
}

} // namespace
} // namespace assay::bench

int main(int argc, char **argv) {
  assay::bench::Options options;
  CLI::App app("Exchanges of states between the GPUs of one host");
  app.add_option("--ranks", options.ranks, "GPUs, 2 to 8")->check(CLI::Range(2, 8));
  app.add_option("--nccl", options.nccl, "libnccl.so.2, to be timed beside it");
  app.add_option("--endurance", options.endurance,
                 "exchanges of each of six shapes, with random delays");
  app.add_option("--json", options.json, "file for the result");
  CLI11_PARSE(app, argc, argv);
  try {
    return assay::bench::run(options);
  } catch (const std::exception &error) {
    fmt::print(stderr, "exchange_bench: {}\n", error.what());
    return 1;
  }
}
