// SPDX-License-Identifier: Apache-2.0
// Where the arrays of a call lie: in this process, or elsewhere behind a function that fetches
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace assay::oracle {

class Memory {
public:
  /// Copies `rows` rows of `row_bytes` each, `pitch` bytes apart, to consecutive host memory.
  using Read =
      std::function<void(void *to, const void *from, size_t row_bytes, size_t pitch, size_t rows)>;

  /// The arrays lie in this process.
  Memory() = default;
  explicit Memory(Read read) : read_(std::move(read)) {}

  /// Rows of bytes in this process, `pitch` bytes apart.
  struct Rows {
    const std::byte *data;
    size_t pitch;
  };
  /// The rows in place, or a copy of them in `scratch`.
  Rows rows(const void *from, size_t row_bytes, size_t pitch, size_t rows,
            std::vector<std::byte> &scratch) const {
    if (!read_) return {static_cast<const std::byte *>(from), pitch};
    scratch.resize(row_bytes * rows);
    if (!scratch.empty()) read_(scratch.data(), from, row_bytes, pitch, rows);
    return {scratch.data(), row_bytes};
  }

  template <class T>
  std::vector<T> array(const T *from, size_t count) const {
    std::vector<T> out(count);
    if (count == 0) return out;
    if (read_)
      read_(out.data(), from, count * sizeof(T), count * sizeof(T), 1);
    else
      out.assign(from, from + count);
    return out;
  }

private:
  Read read_;
};

} // namespace assay::oracle
