// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/guarded_block.h"
#include "kernels/simt/hazard.h"

namespace assay::simt {

class AccessHistory;

enum class Access : uint8_t { kReadOnly, kReadWrite };
enum class InitState : uint8_t { kDefined, kUndefined };
enum class Direction : uint8_t { kRead, kWrite };

// Launches that matter to an access, by Memory's count.
struct LaunchNumbers {
  uint32_t own = 0;    // that it belongs to
  uint32_t front = 0;  // in front of that one in its stream; 0: none
  uint32_t oldest = 0; // launches from here on may run beside it
};

struct BufferInfo {
  int id = -1;
  std::byte *data = nullptr;
  size_t bytes = 0;
  Access access = Access::kReadWrite;
  std::string tag;            // the name used in messages
  uint64_t bytes_read = 0;    // by device code, summed over accesses
  uint64_t bytes_written = 0; // by device code, summed over accesses
};

// The global memory of a Stream: every buffer that device code may touch. Addresses are host
// addresses. Not thread safe: one Stream, one host thread at a time.
class Memory {
public:
  Memory();
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  // A new buffer with red zones, `offset` bytes behind a multiple of the alignment. `bytes` may be
  // 0. With kUndefined it is filled with 0xFF, a NaN in every format, and to read a byte is then a
  // hazard until device code has written it or mark_defined() has named it.
  void *allocate(size_t bytes, Access access, InitState init, std::string tag,
                 size_t alignment = 256, size_t offset = 0);
  // Registers memory that somebody else owns, without red zones. Its contents count as defined.
  void adopt(void *data, size_t bytes, Access access, std::string tag);
  // Forgets the buffer that starts at `data`, and frees it if it was allocated here.
  void release(const void *data);
  void clear();

  // Lookup by any address inside the buffer (or its first byte, for an empty one).
  int id_of(const void *address) const; // -1: none
  const BufferInfo &info(int id) const;
  size_t buffer_count() const;

  void mark_defined(const void *address, size_t bytes);
  void mark_undefined(const void *address, size_t bytes); // the contents stay as they are

  // Marks bytes that the kernel in front of an early start may still be writing: to read one before
  // the wait for that kernel is a hazard. Marks count for the next launch alone. A launch behind it
  // begins when every thread has waited: a start_next_grid before the wait and an exit without a
  // wait are hazards.
  void mark_late(const void *address, size_t bytes);
  // Marks every byte there is: what stands in front of a call may have written anything.
  void mark_all_late() {
    all_late_ = true;
    late_launch_ = launches_ + 1;
  }

  // Counts from now on how often each byte of one buffer is read, up to 255. read_counts() is empty
  // where nothing is counted.
  void track_reads(const void *data);
  std::span<const uint8_t> read_counts(const void *data) const;
  void reset_counters();

  // Appends one kRedZoneWritten hazard per damaged buffer and repaints its zones.
  void check_red_zones(std::vector<Hazard> &hazards);

  // An access by device code. Where it is legal, counts it and returns true; else fills kind and
  // text. An address that is not registered is legal unless `strict`.
  bool access(const void *address, size_t bytes, Direction direction, bool strict,
              const LaunchNumbers &launch, HazardKind &kind, std::string &text);
  // Is asked first of an access before the wait of an early start. Fills the text of a kTooEarly
  // hazard and returns false for a write, for a read of bytes that are marked late, and for a read
  // of bytes that the launch in front wrote.
  bool access_early(const void *address, size_t bytes, Direction direction,
                    const LaunchNumbers &launch, std::string &text);
  // Who has touched the buffer of the latest access(). Null where nobody may write to it.
  AccessHistory *history() const { return history_; }
  // "4 bytes at offset 8 of buffer 'lse'".
  std::string place(const void *address, size_t bytes) const;
  // Numbers launches from 1. A Writer with another number is not of the running grid. It is called
  // also for a kernel that does not run here, but stands between two that do.
  uint32_t begin_launch() { return ++launches_; }
  uint32_t launches() const { return launches_; }

private:
  struct Buffer;
  Buffer *find(const void *address) const;
  Buffer &require(const void *data) const;
  static size_t offset_in(const Buffer &buffer, const void *address, size_t bytes);
  Buffer &insert(std::unique_ptr<Buffer> buffer);
  std::string describe_outside(const void *address, size_t bytes) const;

  std::vector<std::unique_ptr<Buffer>> sorted_; // by address
  std::vector<Buffer *> by_id_;                 // null once released
  mutable Buffer *last_hit_ = nullptr;
  AccessHistory *history_ = nullptr;
  uint32_t launches_ = 0, late_launch_ = 0;
  bool all_late_ = false;
};

} // namespace assay::simt
