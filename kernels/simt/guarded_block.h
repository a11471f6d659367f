// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::simt {

// A block of memory with a red zone on either side. The zones hold a pattern, which is checked on
// request. Under AddressSanitizer the zones are poisoned, so that a raw access to them is reported
// where it happens. In other builds pages without access lie beyond the zones: a raw access that
// misses the zones ends the process there.
class GuardedBlock {
public:
  static constexpr size_t kRedZone = 256;
  static constexpr uint8_t kPattern = 0xFB; // large finite in bf16, fp16 and e5m2

  GuardedBlock() = default;
  // data() is `offset` bytes behind a multiple of the alignment.
  GuardedBlock(size_t bytes, size_t alignment, size_t offset = 0);
  GuardedBlock(GuardedBlock &&other) noexcept;
  GuardedBlock &operator=(GuardedBlock &&other) noexcept;
  ~GuardedBlock();

  std::byte *data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // The offset from data() of the first guard byte that has changed, kIntact where none has. It is
  // negative in the leading zone.
  static constexpr ptrdiff_t kIntact = PTRDIFF_MIN;
  ptrdiff_t first_changed_guard() const;
  void repaint_guards();

private:
  void allocate(size_t alignment);
  void release();
  std::byte *zones() const { return data_ - lead_; } // where the leading one begins
  std::byte *allocation_ = nullptr;
  size_t allocated_ = 0;
  std::byte *data_ = nullptr;
  size_t bytes_ = 0;
  size_t lead_ = 0; // bytes before data_, at least kRedZone
  size_t tail_ = 0;
};

} // namespace assay::simt
