// SPDX-License-Identifier: Apache-2.0
#include "oracle/device/bulk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "oracle/device/buffer.h"
#include "oracle/device/make_call.h"
#include "oracle/device/outputs.cuh"
#include "oracle/device/passes.cuh"
#include "oracle/device/plain.cuh"
#include "oracle/device/plain_join.cuh"
#include "oracle/device/waves.h"

namespace assay::oracle {
namespace device {
namespace {

template <int kPairs, int kBlocks>
void launch_passes(const Call &call, unsigned units, unsigned pairs, cudaStream_t stream) {
  const TileShape shape(call.head_dim, call.dims);
  const auto bytes = static_cast<size_t>(UnitLoop<kPairs, kBlocks>::kTilesAt + 2 * shape.bytes());
  // The limit is of the process, and other threads launch with it: that of the largest head_dim.
  const TileShape largest(32 * kBlocks, 32 * kBlocks);
  const int limit = UnitLoop<kPairs, kBlocks>::kTilesAt + 2 * largest.bytes();
  const auto allow = [&](const void *kernel) {
    require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
            "shared memory");
  };
  allow(reinterpret_cast<const void *>(&first_pass<kPairs, kBlocks>));
  allow(reinterpret_cast<const void *>(&second_pass<kPairs, kBlocks>));
  if (units > 0) first_pass<kPairs, kBlocks><<<units, kThreads, bytes, stream>>>(call);
  between_passes<kPairs><<<pairs, kFinishThreads, 0, stream>>>(call);
  if (units > 0) second_pass<kPairs, kBlocks><<<units, kThreads, bytes, stream>>>(call);
  join_units<kPairs><<<(pairs + kRowThreads - 1) / kRowThreads, kRowThreads, 0, stream>>>(call);
  decide_outputs<kPairs><<<pairs, kFinishThreads, 0, stream>>>(call);
  require(cudaGetLastError(), "launch");
}

template <int kPairs>
void launch_plain(const Call &call, unsigned units, unsigned pairs, cudaStream_t stream) {
  const int limit = PlainLoop<kPairs>::kTilesAt + 2 * kPlainTileBytes + kPlainRawBytes;
  const int bytes = call.kv_dtype == ASSAY_BF16 ? limit - kPlainRawBytes : limit;
  require(cudaFuncSetAttribute(reinterpret_cast<const void *>(&plain_pass<kPairs>),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, limit),
          "shared memory");
  if (units > 0) plain_pass<kPairs><<<units, kThreads, static_cast<size_t>(bytes), stream>>>(call);
  decide_plain<kPairs><<<pairs, kFinishThreads, 0, stream>>>(call);
  require(cudaGetLastError(), "launch");
}

template <int kPairs>
void launch_of_dim(const Call &call, unsigned units, unsigned pairs, cudaStream_t stream) {
  if (call.plain != 0) launch_plain<kPairs>(call, units, pairs, stream);
  const int blocks = (std::max(call.head_dim, call.dims) + 31) / 32;
  if (blocks <= 2) return launch_passes<kPairs, 2>(call, units, pairs, stream);
  if (blocks <= 4) return launch_passes<kPairs, 4>(call, units, pairs, stream);
  launch_passes<kPairs, 8>(call, units, pairs, stream);
}

} // namespace
} // namespace device

std::string bulk_refuses(const AttentionRows &rows, const KernelModel &model) {
  return device::refused(rows, model);
}

struct BulkJudge::Device {
  device::Buffer arrays[device::kCallArrays];
  device::Buffer lists, row_ids, plain_units, first, second, value, components, pairs, ends, center,
      plain_sums, redo, totals, open, elements;
  cudaEvent_t before = nullptr, after = nullptr;

  Device() {
    device::require(cudaEventCreate(&before), "event");
    device::require(cudaEventCreate(&after), "event");
  }
  ~Device() {
    cudaEventDestroy(before);
    cudaEventDestroy(after);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  void run(device::Call call, const device::Wave &wave, int pairs_of_unit, cudaStream_t stream);
};

BulkJudge::BulkJudge() : device_(std::make_unique<Device>()) {}
BulkJudge::~BulkJudge() = default;

void BulkJudge::Device::run(device::Call call, const device::Wave &wave, int pairs_of_unit,
                            cudaStream_t stream) {
  const auto slots = static_cast<size_t>(wave.units * pairs_of_unit);
  const auto dims = static_cast<size_t>(call.dims);
  const size_t pair_count = wave.rows.size() * static_cast<size_t>(call.num_heads);
  call.lists = lists.copy(wave.lists, stream);
  call.num_lists = static_cast<int32_t>(wave.lists.size());
  call.row_ids = row_ids.copy(wave.rows, stream);
  call.plain_units = plain_units.reserve<bool>(static_cast<size_t>(wave.units));
  call.first = first.reserve<device::FirstSums>(slots);
  call.second = second.reserve<device::SecondSums>(slots);
  call.value = value.reserve<double>(slots * dims);
  call.components = components.reserve<device::ComponentSums>(slots * dims);
  call.plain =
      call.plain != 0 && std::all_of(wave.lists.begin(), wave.lists.end(), [](const auto &l) {
        return l.chunk <= device::kPlainTiles * device::kTileKeys;
      });
  if (call.plain != 0) {
    static_assert(sizeof(device::PlainComponent) <= sizeof(device::ComponentSums));
    call.plain_sums = plain_sums.reserve<device::PlainSums>(slots);
    // Read before the second pass writes.
    call.plain_components = reinterpret_cast<device::PlainComponent *>(call.components);
    call.redo = redo.reserve<bool>(pair_count);
  }
  call.num_pairs = static_cast<int32_t>(pair_count);
  call.ends = ends.reserve<device::PairEnd>(pair_count);
  call.pairs = pairs.reserve<device::PairState>(pair_count);
  call.center = center.reserve<double>(pair_count * dims);
  const auto units = static_cast<unsigned>(wave.units), blocks = static_cast<unsigned>(pair_count);
  if (pairs_of_unit == 4)
    device::launch_of_dim<4>(call, units, blocks, stream);
  else
    device::launch_of_dim<8>(call, units, blocks, stream);
}

BulkReport BulkJudge::judge(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, void *on_stream,
                            std::vector<BulkElement> *elements) {
  if (const std::string reason = bulk_refuses(rows, model); !reason.empty())
    throw std::invalid_argument("bulk judge: " + reason);
  BulkReport report;
  if (rows.out.rows() == 0) return report;
  const auto stream = static_cast<cudaStream_t>(on_stream);
  AttentionReader reader(rows, model);
  const device::CallShape shape = device::shape_of_call(rows, model, reader);
  int array = 0;
  device::Call call = device::make_call(rows, outputs, shape, [&](const void *from, size_t bytes) {
    return device_->arrays[array++].copy(static_cast<const unsigned char *>(from), bytes, stream);
  });
  call.max_open = kMaxOpen;
  call.plain = device::plain(rows, model);
  const int group = call.num_heads / call.num_kv_heads;
  int longest = 1; // rows of a list
  for (size_t i = 1, same = 1; i < rows.list.size(); ++i) {
    same = rows.list[i] == rows.list[i - 1] ? same + 1 : 1;
    longest = std::max(longest, static_cast<int>(same));
  }
  const int pairs = group * longest > 4 ? 8 : 4;
  const std::vector<device::Wave> waves =
      device::waves_of(rows, {pairs, group, call.num_kv_heads, call.dims});
  call.totals = device_->totals.reserve<device::Totals>(1);
  call.open = device_->open.reserve<device::OpenRow>(kMaxOpen);
  if (elements != nullptr) {
    const BulkElement none{0.0, 0.0, NAN};
    elements->assign(
        rows.out.o_at.size() * rows.heads.size() * (static_cast<size_t>(rows.out.dims) + 1), none);
    call.elements = device_->elements.copy(*elements, stream);
  }
  device::require(cudaMemsetAsync(call.totals, 0, sizeof(device::Totals), stream), "clearing");
  device::require(cudaEventRecord(device_->before, stream), "event");
  for (const device::Wave &wave : waves)
    device_->run(call, wave, pairs, stream);
  device::require(cudaEventRecord(device_->after, stream), "event");
  device::Totals totals{};
  device::require(
      cudaMemcpyAsync(&totals, call.totals, sizeof totals, cudaMemcpyDeviceToHost, stream),
      "copy to the host");
  device::require(cudaStreamSynchronize(stream), "passes");
  float ms = 0.0f;
  device::require(cudaEventElapsedTime(&ms, device_->before, device_->after), "time");
  report = {totals.elements,
            totals.claimed,
            totals.no_claim,
            std::bit_cast<double>(totals.worst),
            std::bit_cast<double>(totals.worst_lse),
            totals.open_rows,
            {},
            totals.one_pass,
            ms};
  std::vector<device::OpenRow> open(std::min<size_t>(totals.open_rows, kMaxOpen));
  device::require(
      cudaMemcpy(open.data(), call.open, open.size() * sizeof open[0], cudaMemcpyDeviceToHost),
      "copy to the host");
  if (elements != nullptr)
    device::require(cudaMemcpy(elements->data(), call.elements,
                               elements->size() * sizeof(BulkElement), cudaMemcpyDeviceToHost),
                    "copy to the host");
  for (const device::OpenRow &row : open)
    report.open.push_back({row.row, row.head});
  std::sort(report.open.begin(), report.open.end(), [](const RowHead &a, const RowHead &b) {
    return a.row != b.row ? a.row < b.row : a.head < b.head;
  });
  return report;
}

} // namespace assay::oracle
