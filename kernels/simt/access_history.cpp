// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/access_history.h"

#include <utility>

namespace assay::simt {

void AccessHistory::cover(const void *data, size_t bytes) {
  chunks_.clear();
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  first_ = begin / kChunkBytes;
  chunks_.resize((begin + bytes - 1) / kChunkBytes - first_ + 1);
}

void AccessHistory::forget() {
  ++serial_;
  more_.resize(1);
  free_ = 0;
}

void AccessHistory::prepare(Chunk &chunk, uint32_t shift) {
  if (chunk.serial != serial_) {
    constexpr size_t kCells = kChunkBytes >> kCoarsestShift;
    if (chunk.capacity == 0) {
      chunk.cells = std::make_unique<Cell[]>(kCells);
      chunk.capacity = kCells;
    } else {
      std::fill_n(chunk.cells.get(), kCells, Cell{});
    }
    chunk.shift = kCoarsestShift;
    chunk.serial = serial_;
  }
  if (shift < chunk.shift) refine(chunk, shift);
}

void AccessHistory::refine(Chunk &chunk, uint32_t shift) {
  const size_t count = kChunkBytes >> shift;
  if (chunk.capacity < count) {
    auto cells = std::make_unique<Cell[]>(count);
    std::copy_n(chunk.cells.get(), kChunkBytes >> chunk.shift, cells.get());
    chunk.cells = std::move(cells);
    chunk.capacity = count;
  }
  for (size_t i = count; i-- > 0;) {
    Cell &to = chunk.cells[i];
    const size_t from = i >> (chunk.shift - shift);
    to = chunk.cells[from];
    // Every cell has a list of its own.
    const bool first = i == from << (chunk.shift - shift);
    if (!first && to.readers.lanes != 0 && to.readers.launch >= oldest_)
      for (uint32_t copied = 0, next = std::exchange(to.readers.next, 0); next != 0;
           next = more_[next].next) {
        copied = keep(more_[next]);
        more_[copied].next = to.readers.next;
        to.readers.next = copied;
      }
  }
  chunk.shift = shift;
}

uint32_t AccessHistory::keep(const Readers &readers) {
  uint32_t at = free_;
  if (at != 0) {
    free_ = more_[at].next;
    more_[at] = readers;
  } else {
    at = static_cast<uint32_t>(more_.size());
    more_.push_back(Readers(readers));
  }
  return at;
}

void AccessHistory::release(uint32_t first) {
  uint32_t last = first;
  while (more_[last].next != 0)
    last = more_[last].next;
  more_[last].next = std::exchange(free_, first);
}

// A later read of a lane stands for its earlier ones: who is behind it is behind those, too. A
// plain one stands for atomic ones, and not the reverse.
void AccessHistory::add_beside(Cell &cell, const Readers &reader, uint32_t over) {
  // Lanes that have read later than the reader in hand. A lane joins readers of its time without a
  // look at older ones, so these may have lanes of all that are newer.
  uint32_t later = reader.lanes;
  const auto replace = [&](Readers &old) {
    if (!old.same_warp(reader)) return;
    if (old.matrix) {
      old.lanes = 0; // operations of a warp complete in order
      return;
    }
    const bool same_kind = old.how == reader.how && old.takes == reader.takes;
    const uint32_t lanes = old.lanes;
    if (reader.how == How::kPlain ? !old.takes : same_kind) old.lanes &= ~later;
    if (same_kind) later |= lanes;
  };
  const uint32_t bit = 1u << reader.warp % 32;
  Readers &newest = cell.readers;
  uint32_t depth = newest.depth, warps = bit;
  if (!newest.same_block(reader)) {
    if (++depth > kOfOthers) depth = drop_oldest(newest);
  } else {
    warps |= newest.warps;
    // Most often a warp has not read the word before, and nothing of it is to be found.
    const bool known = (newest.warps & bit) != 0;
    if (known && join(newest, reader)) return;
    if (known || newest.stamp <= over) clean(newest, replace, over);
  }
  uint32_t next = newest.next;
  if (newest.lanes != 0 && (newest.matrix || newest.stamp > over)) next = keep(newest);
  newest = reader;
  newest.next = next;
  newest.depth = static_cast<uint8_t>(depth);
  newest.warps = warps;
}

// Adds the lane to those that read at the same time at the same line. Returns whether there are
// such: on seeded schedules the lanes of warps come in turns, hundreds to a word of a plan.
bool AccessHistory::join(const Readers &newest, const Readers &reader) {
  for (uint32_t i = newest.next; i != 0 && more_[i].same_block(newest); i = more_[i].next)
    if (more_[i].same_time(reader) && more_[i].site == reader.site) {
      more_[i].lanes |= reader.lanes;
      return true;
    }
  return false;
}

// Drops what `replace` leaves without lanes, and who is over, among the readers of a block.
template <class Replace>
void AccessHistory::clean(Readers &newest, Replace replace, uint32_t over) {
  replace(newest);
  for (uint32_t *link = &newest.next; *link != 0;) {
    Readers &old = more_[*link];
    if (!old.same_block(newest)) break; // blocks come one after the other
    replace(old);
    const bool is_over = !old.matrix && old.stamp <= over;
    if (old.lanes != 0 && !is_over) {
      link = &old.next;
      continue;
    }
    const uint32_t unused = *link;
    *link = old.next;
    old.next = std::exchange(free_, unused);
  }
}

// Keeps half of those that may be kept. Returns how many those are.
uint32_t AccessHistory::drop_oldest(Readers &newest) {
  uint32_t *link = &newest.next;
  uint32_t kept = 1;
  for (; *link != 0 && kept < kOfOthers / 2; ++kept)
    link = &more_[*link].next;
  if (*link != 0) release(std::exchange(*link, 0));
  return kept;
}

} // namespace assay::simt
