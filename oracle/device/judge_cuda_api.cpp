// SPDX-License-Identifier: Apache-2.0
// The entry points of assay_judge.h for memory of a GPU.
#include <cuda_runtime_api.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "oracle/device/whole_report.h"
#include "oracle/judge/judge_entry.h"

namespace assay::oracle {
namespace {

void require(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

struct Named {
  const char *name;
  const assay_array &array;
};

/// The device that memory belongs to; -1: none.
int device_of(const void *data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError(); // it is said here
    return -1;
  }
  const bool there =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  return there ? attributes.device : -1;
}

/// The device on which all arrays lie that hold anything; -1: none does. Throws ArrayError by name.
int common_device(std::initializer_list<Named> arrays) {
  int device = -1;
  const char *first = nullptr;
  for (const auto &[name, array] : arrays) {
    bool empty = array.data == nullptr;
    for (int i = 0; i < array.dims && i < 4; ++i)
      empty |= array.shape[i] == 0;
    if (empty) continue;
    const int own = device_of(array.data);
    if (own < 0)
      throw ArrayError(ASSAY_INVALID_ARGUMENT,
                       std::string(name) + " is no memory of a GPU, expected that of all tensors");
    if (device >= 0 && own != device)
      throw ArrayError(ASSAY_INVALID_ARGUMENT, std::string(name) + " lies on GPU " +
                                                   std::to_string(own) + ", " + first + " on GPU " +
                                                   std::to_string(device));
    if (device < 0) first = name;
    device = own;
  }
  return device;
}
int device_of(const assay_judge_attention_params &p) {
  return common_device({{"out", p.out}, {"q", p.q}, {"k", p.k}, {"v", p.v}, {"lse", p.lse}});
}
int device_of(const assay_judge_merge_params &p) {
  return common_device({{"out", p.out}, {"lse", p.lse}, {"o_in", p.o_in}, {"lse_in", p.lse_in}});
}

/// Makes a device the current one, for a while.
class OnDevice {
public:
  explicit OnDevice(int device) {
    require(cudaGetDevice(&before_), "device");
    if (device >= 0) require(cudaSetDevice(device), "device");
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;

private:
  int before_ = 0;
};

/// Memory of the GPU or of the host.
void read(void *to, const void *from, size_t bytes, size_t pitch, size_t rows) {
  require(cudaMemcpy2D(to, bytes, from, pitch, bytes, rows, cudaMemcpyDefault), "reading");
}

template <class Params>
assay_status judge(const Params *params, void *stream, assay_judge_report *report) {
  return judge_entry(
      params, report,
      [&](const CallRows &rows, const CallOutputs &outputs, const KernelModel &model,
          size_t &rows_judged) {
        const OnDevice on(device_of(*params));
        require(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the stream");
        const Elsewhere there{
            .rows = [&](const AttentionRows &r, const CallOutputs &o,
                        const KernelModel &m) { return TierJudge().judge(r, o, m, stream); },
            .merges = [&](const MergeRows &r, const CallOutputs &o,
                          const KernelModel &m) { return MergeJudge().judge(r, o, m, stream); },
            .memory = Memory(read)};
        rows_judged = static_cast<size_t>(outputs_of(rows).rows());
        return whole_report(rows, outputs, model, there, params->threads);
      });
}

} // namespace
} // namespace assay::oracle

assay_status assay_judge_attention_cuda(const assay_judge_attention_params *params, void *stream,
                                        assay_judge_report *report) {
  return assay::oracle::judge(params, stream, report);
}

assay_status assay_judge_merge_cuda(const assay_judge_merge_params *params, void *stream,
                                    assay_judge_report *report) {
  return assay::oracle::judge(params, stream, report);
}

const char *assay_judge_last_error(void) { return assay::oracle::judge_last_error().c_str(); }
