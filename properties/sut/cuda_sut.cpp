// SPDX-License-Identifier: Apache-2.0
// Host code only: the CUDA runtime is all it needs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "properties/call/params.h"
#include "properties/sut/child.h"
#include "properties/sut/device_oracle.h"
#include "properties/sut/guard.h"
#include "properties/sut/late_writer.h"
#include "properties/sut/sut.h"

namespace assay {
namespace {

/// Set when the context is lost (an illegal access, for instance): every later call in this process
/// fails for that reason, so nothing may be concluded from it.
std::atomic<bool> device_lost{false};

std::string describe(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

void require(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("cuda: ") + what + ": " + describe(error));
}

/// Device and pinned host memory of equal size, grown on demand and kept between runs.
class Arena {
public:
  ~Arena() { release(); }
  void reserve(size_t bytes) {
    if (bytes <= bytes_) return;
    release();
    bytes_ = bytes + bytes / 2;
    require(cudaMalloc(&device_, bytes_), "allocating device memory");
    require(cudaMallocHost(&host_, bytes_), "allocating pinned memory");
  }
  std::byte *host() { return static_cast<std::byte *>(host_); }
  std::byte *device() { return static_cast<std::byte *>(device_); }

private:
  void release() {
    cudaFree(device_);
    cudaFreeHost(host_);
    device_ = host_ = nullptr;
    bytes_ = 0;
  }
  void *device_ = nullptr, *host_ = nullptr;
  size_t bytes_ = 0;
};

/// A workspace may have hundreds of MB: the host makes so many bytes of poison, and the device
/// repeats them.
constexpr size_t kPoisonBytes = size_t{1} << 20;

class CudaSut final : public Sut {
public:
  explicit CudaSut(const assay_kernel &kernel) : Sut(kernel) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  }
  ~CudaSut() override { cudaStreamDestroy(stream_); }

  DeviceOracle *device_oracle() override {
    if (!oracle_) oracle_.emplace(DeviceOracle::Where::kThisProcess);
    return &*oracle_;
  }

private:
  /// A block of the arena, between two guard bands.
  struct Placed {
    std::string name;
    size_t bytes, at; ///< at: where its first byte lies
  };

  RunResult execute(Tensors &t) override {
    if (device_lost) throw std::runtime_error("cuda: the device was lost in an earlier case");
    placed_.clear();
    total_ = 0;
    for (const Buffer &b : t.buffers)
      place(b.name, b.bytes.size(), b.offset);
    RunResult result;
    uint64_t scratch = 0;
    {
      // Shapes only: the scratch must be known before device addresses are. Nothing reads these.
      AbiParams shape = make_params(t, host_addresses(t), ASSAY_TARGET_CUDA, stream_);
      if (kernel().workspace_size != nullptr)
        if (assay_status status = kernel().workspace_size(shape.get(), &scratch))
          return refused(std::move(result), status);
    }
    place("workspace", scratch, scratch_offset(t, "workspace"));
    uint64_t plan_bytes = 0;
    if (plans_apart(t)) {
      AbiParams shape = make_params(t, host_addresses(t), ASSAY_TARGET_CUDA, stream_);
      if (assay_status status = kernel().plan_size(shape.get(), &plan_bytes))
        return refused(std::move(result), status);
      place("plan", plan_bytes, scratch_offset(t, "plan"));
      if (plans_for_others(t)) place_other_plan(t, plan_bytes);
    }
    const std::vector<LateRange> late =
        t.problem.enable_pdl ? late_ranges(t) : std::vector<LateRange>();
    arena_.reserve(t.problem.enable_pdl ? LateMemory::total(total_, late.size()) : total_);
    fill(t);
    AbiParams params = make_params(t, addresses(t.buffers.size()), ASSAY_TARGET_CUDA, stream_);
    params.set_workspace(address(t.buffers.size()), scratch);
    if (plan_bytes > 0) params.set_plan(address(t.buffers.size() + 1), plan_bytes);
    if (assay_status status = kernel().supports(params.get()))
      return refused(std::move(result), status);
    upload(placed_[t.buffers.size()]);
    if (plan_bytes > 0) result.status = kernel().plan(params.get());
    if (result.status == ASSAY_OK && plan_bytes > 0 && plans_for_others(t))
      result.status = plan_for_others(t, params);
    if (t.problem.enable_pdl)
      require(
          enqueue_late_writer({arena_.device(), arena_.device() + total_, total_}, late, stream_),
          "starting the kernel in front");
    if (result.status == ASSAY_OK) result.status = kernel().run(params.get());
    if (result.status != ASSAY_OK) result.message = last_message(kernel());
    if (cudaError_t error = cudaStreamSynchronize(stream_)) {
      device_lost = true;
      result.hazards.push_back({.kind = Hazard::Kind::kDevice,
                                .name = describe(error),
                                .text = "cuda: " + describe(error)});
      return result;
    }
    download(t, result);
    return result;
  }

  /// Behind the plan: another one, and the lengths that it is for.
  void place_other_plan(const Tensors &t, uint64_t plan_bytes) {
    place("another plan", plan_bytes, scratch_offset(t, "another plan"));
    place("seq_lens of another plan", other_lengths(t).size() * sizeof(int32_t), 0);
  }
  assay_status plan_for_others(const Tensors &t, const AbiParams &own) {
    AbiParams params;
    params.family = own.family;
    params.paged = own.paged;
    const size_t plan = t.buffers.size() + 2;
    params.paged.kv.seq_lens = static_cast<const int32_t *>(address(plan + 1));
    params.set_plan(address(plan), params.paged.plan_bytes);
    return kernel().plan(params.get());
  }

  RunResult refused(RunResult result, assay_status status) {
    result.status = status;
    result.message = last_message(kernel());
    return result;
  }

  /// The block itself begins `offset` bytes behind a multiple of 256.
  void place(const std::string &name, size_t bytes, size_t offset) {
    placed_.push_back({name, bytes, total_ + offset + kGuardBand});
    total_ += (offset + bytes + 2 * kGuardBand + kGuardBand - 1) / kGuardBand * kGuardBand;
  }
  void *address(size_t i) { return arena_.device() + placed_[i].at; }
  std::vector<void *> addresses(size_t count) {
    std::vector<void *> out;
    for (size_t i = 0; i < count; ++i)
      out.push_back(address(i));
    return out;
  }

  std::vector<LateRange> late_ranges(const Tensors &t) const {
    std::vector<LateRange> ranges;
    for (const ByteRange &late : late_bytes(t))
      ranges.push_back({placed_[late.buffer].at + late.offset, late.bytes});
    return ranges;
  }

  /// What the call finds, where it is copied from.
  void fill(const Tensors &t) {
    const size_t tensors = t.buffers.size();
    for (size_t i = 0; i < placed_.size(); ++i) {
      const Placed &p = placed_[i];
      std::byte *to = arena_.host() + p.at;
      if (i < tensors)
        std::memcpy(to, t.buffers[i].bytes.data(), p.bytes);
      else if (i == tensors)
        fill_poison(to, std::min(p.bytes, kPoisonBytes), t.problem);
      else
        std::memset(to, 0, p.bytes);
      write_bands(to, p.bytes);
    }
    if (placed_.size() <= tensors + 2) return; // no other plan
    const std::vector<int32_t> lengths = other_lengths(t);
    std::memcpy(arena_.host() + placed_.back().at, lengths.data(), placed_.back().bytes);
  }
  void upload(const Placed &workspace) {
    const size_t end = workspace.at + workspace.bytes;
    send(0, workspace.at + std::min(workspace.bytes, kPoisonBytes));
    for (size_t done = kPoisonBytes; done < workspace.bytes; done *= 2) {
      std::byte *first = arena_.device() + workspace.at;
      require(cudaMemcpyAsync(first + done, first, std::min(done, workspace.bytes - done),
                              cudaMemcpyDeviceToDevice, stream_),
              "filling the workspace");
    }
    send(end, total_ - end);
  }
  void send(size_t offset, size_t bytes) {
    require(cudaMemcpyAsync(arena_.device() + offset, arena_.host() + offset, bytes,
                            cudaMemcpyHostToDevice, stream_),
            "copying to the device");
  }
  void fetch(size_t offset, size_t bytes) {
    require(cudaMemcpyAsync(arena_.host() + offset, arena_.device() + offset, bytes,
                            cudaMemcpyDeviceToHost, stream_),
            "copying from the device");
  }
  void download(Tensors &t, RunResult &result) {
    const size_t tensors = t.buffers.size();
    fetch(0, placed_.at(tensors).at - kGuardBand);
    // Scratch memory may have hundreds of MB; only its bands are fetched.
    for (size_t i = tensors; i < placed_.size(); ++i) {
      fetch(placed_[i].at - kGuardBand, kGuardBand);
      fetch(placed_[i].at + placed_[i].bytes, kGuardBand);
    }
    require(cudaStreamSynchronize(stream_), "copying from the device");
    for (size_t i = 0; i < placed_.size(); ++i) {
      const Placed &p = placed_[i];
      const std::byte *from = arena_.host() + p.at;
      check_bands(from, p.bytes, p.name, result.violations);
      if (i < tensors) std::memcpy(t.buffers[i].bytes.data(), from, p.bytes);
    }
  }

  cudaStream_t stream_ = nullptr;
  std::optional<DeviceOracle> oracle_;
  Arena arena_;
  std::vector<Placed> placed_;
  size_t total_ = 0;
};

} // namespace

std::string cuda_unavailable() {
  // Asked in a process of its own: a driver that is set up here would not survive the fork of those
  // that kernels run in.
  static const std::string reason = said_apart([]() -> std::string {
    int devices = 0;
    if (cudaError_t error = cudaGetDeviceCount(&devices))
      return "no usable CUDA driver or device (" + std::string(cudaGetErrorName(error)) + ")";
    return devices > 0 ? "" : "no CUDA device";
  });
  return reason;
}

std::unique_ptr<Sut> make_cuda_sut(const assay_kernel &kernel) {
  if (!cuda_unavailable().empty()) return nullptr;
  return std::make_unique<CudaSut>(kernel);
}

} // namespace assay
