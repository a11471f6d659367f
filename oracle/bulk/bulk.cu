// SPDX-License-Identifier: Apache-2.0
#include "oracle/bulk/bulk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "oracle/bounds/row_work.h"
#include "oracle/bulk/outputs.cuh"
#include "oracle/bulk/passes.cuh"
#include "oracle/bulk/waves.h"
#include "oracle/exact/dtype.h"

namespace assay::oracle {
namespace bulk {
namespace {

void require(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("bulk judge: ") + what + ": " + cudaGetErrorString(error));
}

/// Memory of the device that grows and is kept.
class Buffer {
public:
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { cudaFree(data_); }

  template <class T>
  T *reserve(size_t count) {
    const size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
    if (bytes > bytes_) {
      cudaFree(data_);
      data_ = nullptr;
      bytes_ = 0;
      require(cudaMalloc(&data_, bytes), "memory");
      bytes_ = bytes;
    }
    return static_cast<T *>(data_);
  }
  /// The copy is done when this returns, as far as `from` is concerned.
  template <class T>
  T *copy(const std::vector<T> &from, cudaStream_t stream) {
    T *to = reserve<T>(from.size());
    require(
        cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream),
        "copy to the device");
    return to;
  }

private:
  void *data_ = nullptr;
  size_t bytes_ = 0;
};

template <int kPairs, int kBlocks>
void launch_passes(const Call &call, unsigned units, unsigned pairs, cudaStream_t stream) {
  const TileShape shape(call.head_dim, call.dims);
  const auto bytes = static_cast<size_t>(UnitLoop<kPairs, kBlocks>::kTilesAt + 2 * shape.bytes());
  const auto size = static_cast<int>(bytes);
  const auto allow = [&](const void *kernel) {
    require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size),
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
void launch_of_dim(const Call &call, unsigned units, unsigned pairs, cudaStream_t stream) {
  const int blocks = (std::max(call.head_dim, call.dims) + 31) / 32;
  if (blocks <= 2) return launch_passes<kPairs, 2>(call, units, pairs, stream);
  if (blocks <= 4) return launch_passes<kPairs, 4>(call, units, pairs, stream);
  launch_passes<kPairs, 8>(call, units, pairs, stream);
}

bool aligned(const AttentionRows &rows) {
  const int64_t bytes = element_size(rows.kv_dtype), piece = 8 * bytes;
  const auto whole = [&](int64_t elements) { return elements * bytes % piece == 0; };
  const auto base = [&](const void *at) {
    return std::bit_cast<uintptr_t>(at) % static_cast<uintptr_t>(piece) == 0;
  };
  for (const KeyPool &pool : rows.pools)
    if (!base(pool.k) || !base(pool.v) || !whole(pool.k_stride_token) ||
        !whole(pool.k_stride_head) || !whole(pool.v_stride_token) || !whole(pool.v_stride_head))
      return false;
  return std::all_of(rows.runs.begin(), rows.runs.end(),
                     [&](const KeyRun &run) { return whole(run.k_at) && whole(run.v_at); });
}

bool grouped(const AttentionRows &rows) {
  const int heads = rows.out.heads, kv_heads = rows.heads.back().kv_head + 1;
  if (heads % kv_heads != 0) return false;
  for (int head = 0; head < heads; ++head)
    if (rows.heads[static_cast<size_t>(head)].kv_head != head / (heads / kv_heads)) return false;
  return true;
}

bool is16(assay_dtype dtype) { return dtype == ASSAY_FP16 || dtype == ASSAY_BF16; }

} // namespace
} // namespace bulk

std::string bulk_refuses(const AttentionRows &rows, const KernelModel &model) {
  const assay_arithmetic &a = model.arithmetic;
  if (!bulk::is16(rows.q_dtype)) return "q is neither fp16 nor bf16";
  if (rows.kv_dtype != rows.q_dtype && !rows.fp8()) return "K and V are of a type of their own";
  if (!bulk::is16(rows.out.dtype) && rows.out.dtype != ASSAY_FP32) return "outputs are fp8";
  if (rows.scale_blocks() > 0) return "scales of tokens";
  if (!rows.q_scale.empty()) return "a scale of q";
  if (rows.fp8() && a.kv_format != ASSAY_FORMAT_FP32) return "kv_format is declared";
  if (rows.head_dim > bulk::kMaxDim || rows.out.dims > bulk::kMaxDim) return "head_dim above 256";
  if (rows.pools.size() > bulk::kMaxPools) return "more than 8 pools";
  if (rows.heads.empty() || !bulk::grouped(rows)) return "query heads that are not in equal groups";
  if (!rows.span.empty()) return "hidden keys";
  const RowProblem problem = common_problem(rows, model);
  for (const HeadInput &head : rows.heads) {
    RowFeatures features = problem.features;
    features.k_scale = head.k_scale;
    features.v_scale = head.v_scale;
    features.slope = head.slope;
    features.sink = head.sink;
    if (!unclaimed_features(features).empty()) return "a scale, slope or sink without a claim";
  }
  return "";
}

struct BulkJudge::Device {
  bulk::Buffer runs, first_run, q_at, o_at, lse_at, begin, end, behind, heads, shapes;
  bulk::Buffer lists, row_ids, plain_units, first, second, value, components, pairs, ends, center,
      totals, open, elements;
  cudaEvent_t before = nullptr, after = nullptr;

  Device() {
    bulk::require(cudaEventCreate(&before), "event");
    bulk::require(cudaEventCreate(&after), "event");
  }
  ~Device() {
    cudaEventDestroy(before);
    cudaEventDestroy(after);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  bulk::Call call_of(const AttentionRows &rows, const CallOutputs &outputs,
                     const KernelModel &model, cudaStream_t stream);
  void run(bulk::Call call, const bulk::Wave &wave, int pairs_of_unit, cudaStream_t stream);
};

BulkJudge::BulkJudge() : device_(std::make_unique<Device>()) {}
BulkJudge::~BulkJudge() = default;

bulk::Call BulkJudge::Device::call_of(const AttentionRows &rows, const CallOutputs &outputs,
                                      const KernelModel &model, cudaStream_t stream) {
  bulk::Call call{};
  for (size_t i = 0; i < rows.pools.size(); ++i) {
    const KeyPool &pool = rows.pools[i];
    call.pools[i] = {static_cast<const unsigned char *>(pool.k),
                     static_cast<const unsigned char *>(pool.v),
                     pool.k_stride_token,
                     pool.k_stride_head,
                     pool.v_stride_token,
                     pool.v_stride_head};
  }
  const RowProblem problem = common_problem(rows, model);
  call.model = model_of(problem, rows.head_dim);
  call.facts = facts_of(problem);
  AttentionReader reader(rows, model);
  std::vector<RowShape> shape_table;
  for (int row = 0; row < rows.out.rows(); ++row) {
    const RowShape plain = reader.shape(row, false, call.model);
    shape_table.push_back(plain);
    shape_table.push_back(rows.sinks ? reader.shape(row, true, call.model) : plain);
  }
  call.runs = runs.copy(rows.runs, stream);
  call.first_run = first_run.copy(rows.first_run, stream);
  call.q_at = q_at.copy(rows.q_at, stream);
  call.o_at = o_at.copy(rows.out.o_at, stream);
  call.lse_at = lse_at.copy(rows.out.lse_at, stream);
  call.begin = begin.copy(rows.begin, stream);
  call.end = end.copy(rows.end, stream);
  if (!rows.behind.empty()) call.behind = behind.copy(rows.behind, stream);
  call.shard = rows.shard;
  call.heads = heads.copy(rows.heads, stream);
  call.shapes = shapes.copy(shape_table, stream);
  call.q = static_cast<const unsigned char *>(rows.q);
  call.o = static_cast<const unsigned char *>(outputs.o);
  call.lse = outputs.lse;
  call.q_stride_head = rows.q_stride_head;
  call.o_stride_head = rows.out.o_stride_head;
  call.lse_stride_head = rows.out.lse_stride_head;
  call.q_dtype = rows.q_dtype;
  call.kv_dtype = rows.kv_dtype;
  call.o_dtype = rows.out.dtype;
  call.empty_lse = rows.out.empty_lse;
  call.head_dim = rows.head_dim;
  call.dims = rows.out.dims;
  call.num_heads = rows.out.heads;
  call.num_kv_heads = rows.heads.back().kv_head + 1;
  call.sm_scale = rows.sm_scale;
  call.aligned = bulk::aligned(rows);
  call.subnormal = may_be_subnormal(call.model);
  call.max_open = kMaxOpen;
  return call;
}

void BulkJudge::Device::run(bulk::Call call, const bulk::Wave &wave, int pairs_of_unit,
                            cudaStream_t stream) {
  const auto slots = static_cast<size_t>(wave.units * pairs_of_unit);
  const auto dims = static_cast<size_t>(call.dims);
  const size_t pair_count = wave.rows.size() * static_cast<size_t>(call.num_heads);
  call.lists = lists.copy(wave.lists, stream);
  call.num_lists = static_cast<int32_t>(wave.lists.size());
  call.row_ids = row_ids.copy(wave.rows, stream);
  call.plain_units = plain_units.reserve<bool>(static_cast<size_t>(wave.units));
  call.first = first.reserve<bulk::FirstSums>(slots);
  call.second = second.reserve<bulk::SecondSums>(slots);
  call.value = value.reserve<double>(slots * dims);
  call.components = components.reserve<bulk::ComponentSums>(slots * dims);
  call.num_pairs = static_cast<int32_t>(pair_count);
  call.ends = ends.reserve<bulk::PairEnd>(pair_count);
  call.pairs = pairs.reserve<bulk::PairState>(pair_count);
  call.center = center.reserve<double>(pair_count * dims);
  const auto units = static_cast<unsigned>(wave.units), blocks = static_cast<unsigned>(pair_count);
  if (pairs_of_unit == 4)
    bulk::launch_of_dim<4>(call, units, blocks, stream);
  else
    bulk::launch_of_dim<8>(call, units, blocks, stream);
}

BulkReport BulkJudge::judge(const AttentionRows &rows, const CallOutputs &outputs,
                            const KernelModel &model, void *on_stream,
                            std::vector<BulkElement> *elements) {
  if (const std::string reason = bulk_refuses(rows, model); !reason.empty())
    throw std::invalid_argument("bulk judge: " + reason);
  BulkReport report;
  if (rows.out.rows() == 0) return report;
  const auto stream = static_cast<cudaStream_t>(on_stream);
  bulk::Call call = device_->call_of(rows, outputs, model, stream);
  const int group = call.num_heads / call.num_kv_heads;
  int longest = 1; // rows of a list
  for (size_t i = 1, same = 1; i < rows.list.size(); ++i) {
    same = rows.list[i] == rows.list[i - 1] ? same + 1 : 1;
    longest = std::max(longest, static_cast<int>(same));
  }
  const int pairs = group * longest > 4 ? 8 : 4;
  const std::vector<bulk::Wave> waves =
      bulk::waves_of(rows, {pairs, group, call.num_kv_heads, call.dims});
  call.totals = device_->totals.reserve<bulk::Totals>(1);
  call.open = device_->open.reserve<bulk::OpenRow>(kMaxOpen);
  if (elements != nullptr) {
    const BulkElement none{0.0, 0.0, NAN};
    elements->assign(
        rows.out.o_at.size() * rows.heads.size() * (static_cast<size_t>(rows.out.dims) + 1), none);
    call.elements = device_->elements.copy(*elements, stream);
  }
  bulk::require(cudaMemsetAsync(call.totals, 0, sizeof(bulk::Totals), stream), "clearing");
  bulk::require(cudaEventRecord(device_->before, stream), "event");
  for (const bulk::Wave &wave : waves)
    device_->run(call, wave, pairs, stream);
  bulk::require(cudaEventRecord(device_->after, stream), "event");
  bulk::Totals totals{};
  bulk::require(
      cudaMemcpyAsync(&totals, call.totals, sizeof totals, cudaMemcpyDeviceToHost, stream),
      "copy to the host");
  bulk::require(cudaStreamSynchronize(stream), "passes");
  float ms = 0.0f;
  bulk::require(cudaEventElapsedTime(&ms, device_->before, device_->after), "time");
  report = {totals.elements,
            totals.claimed,
            totals.no_claim,
            std::bit_cast<double>(totals.worst),
            std::bit_cast<double>(totals.worst_lse),
            totals.open_rows,
            {},
            ms};
  std::vector<bulk::OpenRow> open(std::min<size_t>(totals.open_rows, kMaxOpen));
  bulk::require(
      cudaMemcpy(open.data(), call.open, open.size() * sizeof open[0], cudaMemcpyDeviceToHost),
      "copy to the host");
  if (elements != nullptr)
    bulk::require(cudaMemcpy(elements->data(), call.elements,
                             elements->size() * sizeof(BulkElement), cudaMemcpyDeviceToHost),
                  "copy to the host");
  for (const bulk::OpenRow &row : open)
    report.open.push_back({row.row, row.head});
  std::sort(report.open.begin(), report.open.end(), [](const RowHead &a, const RowHead &b) {
    return a.row != b.row ? a.row < b.row : a.head < b.head;
  });
  return report;
}

} // namespace assay::oracle
