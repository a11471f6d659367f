// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/ranks/nccl.h"

#include <dlfcn.h>

#include <numeric>
#include <stdexcept>

namespace assay::bench {
namespace {

constexpr int kFloat16 = 6, kFloat32 = 7; // ncclDataType_t; bits are moved, whatever they are

template <class F>
void find(void *library, const char *name, F &function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("NCCL without ") + name);
}

} // namespace

Nccl::Nccl(const std::string &path, int ranks) : comms_(ranks) {
  void *const library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(dlerror());
  find(library, "ncclCommInitAll", init_all_);
  find(library, "ncclAllGather", all_gather_);
  find(library, "ncclSend", send_);
  find(library, "ncclRecv", recv_);
  find(library, "ncclGroupStart", group_start_);
  find(library, "ncclGroupEnd", group_end_);
  find(library, "ncclGetErrorString", error_string_);
  std::vector<int> devices(ranks);
  std::iota(devices.begin(), devices.end(), 0);
  check(init_all_(comms_.data(), ranks, devices.data()), "ncclCommInitAll");
}

void Nccl::check(int result, const char *what) const {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + error_string_(result));
}

void Nccl::all_gather(int rank, const void *o, void *all_o, size_t elements, int bytes,
                      const float *lse, float *all_lse, size_t rows, cudaStream_t stream) const {
  check(group_start_(), "ncclGroupStart");
  check(all_gather_(o, all_o, elements, bytes == 2 ? kFloat16 : kFloat32, comms_[rank], stream),
        "ncclAllGather");
  check(all_gather_(lse, all_lse, rows, kFloat32, comms_[rank], stream), "ncclAllGather");
  check(group_end_(), "ncclGroupEnd");
}

void Nccl::all_to_all(int rank, const void *o, void *parts_o, size_t elements, int bytes,
                      const float *lse, float *parts_lse, size_t rows, cudaStream_t stream) const {
  const auto ranks = static_cast<int>(comms_.size());
  const size_t part = elements / ranks, part_rows = rows / ranks;
  const int type = bytes == 2 ? kFloat16 : kFloat32;
  check(group_start_(), "ncclGroupStart");
  for (int peer = 0; peer < ranks; ++peer) {
    const size_t at = peer * part * bytes;
    const Comm comm = comms_[rank];
    check(send_(static_cast<const char *>(o) + at, part, type, peer, comm, stream), "ncclSend");
    check(recv_(static_cast<char *>(parts_o) + at, part, type, peer, comm, stream), "ncclRecv");
    check(send_(lse + peer * part_rows, part_rows, kFloat32, peer, comm, stream), "ncclSend");
    check(recv_(parts_lse + peer * part_rows, part_rows, kFloat32, peer, comm, stream), "ncclRecv");
  }
  check(group_end_(), "ncclGroupEnd");
}

} // namespace assay::bench
