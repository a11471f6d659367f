// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/memory.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "kernels/simt/access_history.h"

namespace assay::simt {

struct Memory::Buffer {
  BufferInfo info;
  GuardedBlock block;               // empty for adopted memory
  std::vector<uint8_t> defined;     // per byte; empty: all defined
  std::vector<uint8_t> read_counts; // per byte; empty: not tracked
  std::vector<uint8_t> late;        // per byte; empty: none is
  std::vector<uint8_t> written_in;  // epoch_of() a launch, per byte; empty: nothing was written
  AccessHistory history;

  static uint8_t epoch_of(uint32_t launch) { return static_cast<uint8_t>(1 + launch % 255); }
  bool has(const std::vector<uint8_t> &marks, uint8_t mark, const void *address,
           size_t bytes) const {
    if (marks.empty()) return false;
    const size_t offset = reinterpret_cast<uintptr_t>(address) - begin();
    return std::memchr(marks.data() + offset, mark, std::min(bytes, marks.size() - offset)) !=
           nullptr;
  }

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(info.data); }
  uintptr_t end() const { return begin() + info.bytes; }
};

Memory::Memory() = default;
Memory::~Memory() = default;

void *Memory::allocate(size_t bytes, Access access, InitState init, std::string tag,
                       size_t alignment, size_t offset) {
  auto buffer = std::make_unique<Buffer>();
  buffer->block = GuardedBlock(bytes, alignment, offset);
  buffer->info.data = buffer->block.data();
  buffer->info.bytes = bytes;
  buffer->info.access = access;
  buffer->info.tag = std::move(tag);
  if (init == InitState::kUndefined) {
    std::memset(buffer->info.data, 0xFF, bytes);
    buffer->defined.assign(bytes, 0);
  }
  return insert(std::move(buffer)).info.data;
}

void Memory::adopt(void *data, size_t bytes, Access access, std::string tag) {
  auto buffer = std::make_unique<Buffer>();
  buffer->info.data = static_cast<std::byte *>(data);
  buffer->info.bytes = bytes;
  buffer->info.access = access;
  buffer->info.tag = std::move(tag);
  insert(std::move(buffer));
}

Memory::Buffer &Memory::insert(std::unique_ptr<Buffer> buffer) {
  const auto position =
      std::lower_bound(sorted_.begin(), sorted_.end(), buffer,
                       [](const auto &a, const auto &b) { return a->begin() < b->begin(); });
  const bool overlaps_next = position != sorted_.end() && (*position)->begin() < buffer->end();
  const bool overlaps_previous =
      position != sorted_.begin() && (*(position - 1))->end() > buffer->begin();
  if (overlaps_next || overlaps_previous)
    throw std::invalid_argument("simt::Memory: buffer '" + buffer->info.tag +
                                "' overlaps a registered one");
  buffer->info.id = static_cast<int>(by_id_.size());
  Buffer &result = *buffer;
  by_id_.push_back(buffer.get());
  sorted_.insert(position, std::move(buffer));
  return result;
}

void Memory::release(const void *data) {
  Buffer &buffer = require(data);
  last_hit_ = nullptr;
  by_id_[static_cast<size_t>(buffer.info.id)] = nullptr;
  std::erase_if(sorted_, [&](const auto &entry) { return entry.get() == &buffer; });
}

void Memory::clear() {
  last_hit_ = nullptr;
  by_id_.clear();
  sorted_.clear();
}

Memory::Buffer *Memory::find(const void *address) const {
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  if (last_hit_ && a >= last_hit_->begin() && a < last_hit_->end()) return last_hit_;
  const auto after =
      std::upper_bound(sorted_.begin(), sorted_.end(), a,
                       [](uintptr_t value, const auto &buffer) { return value < buffer->begin(); });
  if (after == sorted_.begin()) return nullptr;
  Buffer *candidate = (after - 1)->get();
  if (a != candidate->begin() && a >= candidate->end()) return nullptr;
  last_hit_ = candidate;
  return candidate;
}

Memory::Buffer &Memory::require(const void *data) const {
  Buffer *buffer = find(data);
  if (!buffer) throw std::invalid_argument("simt::Memory: address is in no registered buffer");
  return *buffer;
}

int Memory::id_of(const void *address) const {
  const Buffer *buffer = find(address);
  return buffer ? buffer->info.id : -1;
}

const BufferInfo &Memory::info(int id) const {
  if (id < 0 || static_cast<size_t>(id) >= by_id_.size() || !by_id_[static_cast<size_t>(id)])
    throw std::out_of_range("simt::Memory: no buffer has this id");
  return by_id_[static_cast<size_t>(id)]->info;
}

size_t Memory::buffer_count() const { return sorted_.size(); }

size_t Memory::offset_in(const Buffer &buffer, const void *address, size_t bytes) {
  const size_t offset = reinterpret_cast<uintptr_t>(address) - buffer.begin();
  if (bytes > buffer.info.bytes - offset)
    throw std::out_of_range("simt::Memory: range leaves buffer '" + buffer.info.tag + "'");
  return offset;
}

void Memory::mark_defined(const void *address, size_t bytes) {
  Buffer &buffer = require(address);
  if (buffer.defined.empty()) return;
  std::memset(buffer.defined.data() + offset_in(buffer, address, bytes), 1, bytes);
}

void Memory::mark_late(const void *address, size_t bytes) {
  Buffer &buffer = require(address);
  const size_t offset = offset_in(buffer, address, bytes);
  if (buffer.late.empty()) buffer.late.assign(buffer.info.bytes, 0);
  late_launch_ = launches_ + 1;
  std::memset(buffer.late.data() + offset, 1, bytes);
}

void Memory::mark_undefined(const void *address, size_t bytes) {
  Buffer &buffer = require(address);
  const size_t offset = offset_in(buffer, address, bytes);
  if (buffer.defined.empty()) buffer.defined.assign(buffer.info.bytes, 1);
  std::memset(buffer.defined.data() + offset, 0, bytes);
}

void Memory::track_reads(const void *data) {
  Buffer &buffer = require(data);
  buffer.read_counts.assign(buffer.info.bytes, 0);
}

std::span<const uint8_t> Memory::read_counts(const void *data) const {
  return require(data).read_counts;
}

void Memory::reset_counters() {
  for (auto &buffer : sorted_) {
    buffer->info.bytes_read = 0;
    buffer->info.bytes_written = 0;
    std::fill(buffer->read_counts.begin(), buffer->read_counts.end(), uint8_t{0});
  }
}

void Memory::check_red_zones(std::vector<Hazard> &hazards) {
  for (auto &buffer : sorted_) {
    const ptrdiff_t offset = buffer->block.first_changed_guard();
    if (offset == GuardedBlock::kIntact) continue;
    Hazard hazard;
    hazard.kind = HazardKind::kRedZoneWritten;
    hazard.buffer = buffer->info.tag;
    const std::string where =
        offset < 0 ? std::to_string(-offset) + " bytes before"
                   : std::to_string(offset - static_cast<ptrdiff_t>(buffer->info.bytes)) +
                         " bytes past the end of";
    hazard.message = "red-zone-written: a guard byte " + where + " buffer '" + buffer->info.tag +
                     "' (" + std::to_string(buffer->info.bytes) + " bytes) was changed";
    hazards.push_back(std::move(hazard));
    buffer->block.repaint_guards();
  }
}

std::string Memory::describe_outside(const void *address, size_t bytes) const {
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  const Buffer *nearest = nullptr;
  uintptr_t best = UINTPTR_MAX;
  for (const auto &buffer : sorted_) {
    const uintptr_t distance =
        a < buffer->begin() ? buffer->begin() - a : (a >= buffer->end() ? a - buffer->end() : 0);
    if (distance < best) best = distance, nearest = buffer.get();
  }
  std::string text = std::to_string(bytes) + " bytes ";
  if (!nearest) return text + "at an address in no registered buffer (none is registered)";
  const std::string name =
      "buffer '" + nearest->info.tag + "' (" + std::to_string(nearest->info.bytes) + " bytes)";
  if (best > (uintptr_t{1} << 20))
    return text + "at an address in no registered buffer (the nearest, " + name + ", is " +
           std::to_string(best) + " bytes away)";
  if (a < nearest->begin()) return text + "starting " + std::to_string(best) + " before " + name;
  return text + "at offset " + std::to_string(a - nearest->begin()) + " of " + name;
}

std::string Memory::place(const void *address, size_t bytes) const {
  const Buffer *buffer = find(address);
  const std::string text = std::to_string(bytes) + " bytes";
  if (buffer == nullptr) return text;
  return text + " at offset " +
         std::to_string(reinterpret_cast<uintptr_t>(address) - buffer->begin()) + " of buffer '" +
         buffer->info.tag + "'";
}

bool Memory::access_early(const void *address, size_t bytes, Direction direction,
                          const LaunchNumbers &launch, std::string &text) {
  const Buffer *buffer = find(address);
  const char *what = nullptr;
  if (direction == Direction::kWrite)
    what = " are written";
  else if (buffer != nullptr && launch.own == late_launch_ &&
           (all_late_ || buffer->has(buffer->late, 1, address, bytes)))
    what = ", which the kernel in front may be writing, are read";
  else if (buffer != nullptr && launch.front != 0 &&
           buffer->has(buffer->written_in, Buffer::epoch_of(launch.front), address, bytes))
    what = ", which the kernel in front has written, are read";
  if (what == nullptr) return true;
  text = place(address, bytes) + std::string(what) + " before wait_for_previous_grid";
  return false;
}

bool Memory::access(const void *address, size_t bytes, Direction direction, bool strict,
                    const LaunchNumbers &launch, HazardKind &kind, std::string &text) {
  Buffer *buffer = find(address);
  history_ = nullptr;
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  if (!buffer || bytes > buffer->end() - a) {
    if (!buffer && !strict) return true;
    kind = HazardKind::kGlobalOutOfBounds;
    text = describe_outside(address, bytes);
    return false;
  }
  const size_t offset = a - buffer->begin();
  if (buffer->info.access == Access::kReadWrite && bytes != 0) {
    history_ = &buffer->history;
    if (history_->empty()) history_->cover(buffer->info.data, buffer->info.bytes);
    history_->forget_readers_before(launch.oldest);
  }
  if (direction == Direction::kWrite) {
    if (buffer->info.access == Access::kReadOnly) {
      kind = HazardKind::kReadOnlyWritten;
      text = place(address, bytes) + ", which is read-only";
      return false;
    }
    buffer->info.bytes_written += bytes;
    if (!buffer->defined.empty()) std::memset(buffer->defined.data() + offset, 1, bytes);
    if (buffer->written_in.empty()) buffer->written_in.assign(buffer->info.bytes, 0);
    std::memset(buffer->written_in.data() + offset, Buffer::epoch_of(launch.own), bytes);
    return true;
  }
  if (!buffer->defined.empty()) {
    const uint8_t *first = buffer->defined.data() + offset;
    if (std::memchr(first, 0, bytes)) {
      kind = HazardKind::kUninitGlobalRead;
      text = place(address, bytes) + ", never written";
      return false;
    }
  }
  buffer->info.bytes_read += bytes;
  if (!buffer->read_counts.empty())
    for (size_t i = 0; i < bytes; ++i) {
      uint8_t &count = buffer->read_counts[offset + i];
      count = static_cast<uint8_t>(count + (count != 255));
    }
  return true;
}

} // namespace assay::simt
