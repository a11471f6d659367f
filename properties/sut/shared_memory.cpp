// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "properties/sut/guard.h"

namespace assay {
namespace {

[[noreturn]] void fail() {
  throw std::runtime_error(fmt::format("no shared memory: {}", strerror(errno)));
}

} // namespace

SharedMemory::SharedMemory() : fd_(memfd_create("assay-case", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (fd_ < 0) fail();
  // A process that cuts the file would end the harness with SIGBUS.
  fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
}

SharedMemory::~SharedMemory() {
  if (at_ != nullptr) munmap(at_, size_);
  close(fd_);
}

std::byte *SharedMemory::room(size_t bytes) {
  if (bytes <= size_) return at_;
  constexpr size_t kStep = size_t{1} << 20; // seldom mapped anew
  const size_t wanted = (bytes + bytes / 2 + kStep - 1) / kStep * kStep;
  if (ftruncate(fd_, static_cast<off_t>(wanted)) != 0) fail();
  map(wanted);
  return at_;
}

std::byte *SharedMemory::see(size_t size) {
  if (size != size_) map(size);
  return at_;
}

void SharedMemory::map(size_t size) {
  if (at_ != nullptr) munmap(at_, size_);
  at_ = nullptr;
  size_ = 0;
  void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) fail();
  at_ = static_cast<std::byte *>(at);
  size_ = size;
}

CallLayout::CallLayout(const Tensors &t) {
  constexpr size_t kAlign = 256;
  for (const Buffer &b : t.buffers) {
    offsets.push_back(bytes + kGuardBand + b.offset);
    bytes += (2 * kGuardBand + b.offset + b.bytes.size() + kAlign - 1) / kAlign * kAlign;
  }
}

void put_buffers(const Tensors &t, const CallLayout &layout, std::byte *memory) {
  for (size_t i = 0; i < t.buffers.size(); ++i) {
    const std::vector<std::byte> &bytes = t.buffers[i].bytes;
    std::byte *at = memory + layout.offsets[i];
    std::memcpy(at, bytes.data(), bytes.size());
    write_bands(at, bytes.size());
  }
}

void take_buffers(Tensors &t, const CallLayout &layout, const std::byte *memory,
                  RunResult &result) {
  for (size_t i = 0; i < t.buffers.size(); ++i) {
    Buffer &b = t.buffers[i];
    const std::byte *at = memory + layout.offsets[i];
    std::memcpy(b.bytes.data(), at, b.bytes.size());
    check_bands(at, b.bytes.size(), b.name, result.violations);
  }
}

} // namespace assay
