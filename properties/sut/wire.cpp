// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/wire.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace assay::wire {
namespace {

class Packer {
public:
  Message bytes;

  template <class T>
  void operator()(const T &value) requires std::is_trivially_copyable_v<T> {
    append(&value, sizeof value);
  }
  template <class T>
  void operator()(const std::vector<T> &values) {
    (*this)(uint64_t{values.size()});
    if constexpr (std::is_trivially_copyable_v<T>)
      append(values.data(), values.size() * sizeof(T));
    else
      for (const T &value : values)
        item(*this, value);
  }
  void operator()(const std::string &text) { (*this)(std::vector<char>(text.begin(), text.end())); }

private:
  void append(const void *from, size_t size) {
    const auto *begin = static_cast<const std::byte *>(from);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

/// Throws std::out_of_range behind the end.
class Unpacker {
public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }

  template <class T>
  void operator()(T &value) requires std::is_trivially_copyable_v<T> {
    take(&value, sizeof value);
  }
  template <class T>
  void operator()(std::vector<T> &values) {
    uint64_t count = 0;
    (*this)(count);
    // Every element takes a byte at least: a count that lies allocates nothing.
    if (count > bytes_.size()) throw std::out_of_range("count");
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (count * sizeof(T) > bytes_.size()) throw std::out_of_range("count");
      values.resize(count);
      take(values.data(), count * sizeof(T));
    } else {
      values.resize(count);
      for (T &value : values)
        item(*this, value);
    }
  }
  void operator()(std::string &text) {
    std::vector<char> letters;
    (*this)(letters);
    text.assign(letters.begin(), letters.end());
  }

private:
  void take(void *to, size_t size) {
    if (size > bytes_.size()) throw std::out_of_range("short");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;
};

/// T is U or const U: one function writes and reads.
template <class T, class U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

template <class Io, class T>
requires Is<T, std::string> || Is<T, std::vector<int>>
void item(Io &io, T &value) { io(value); }

template <class Io, Is<KeyOrderAnswer> T>
void item(Io &io, T &a) {
  io(a.error);
  io(a.order.tiles);
  io(a.order.first);
}

template <class Io, Is<CascadeLevel> T>
void item(Io &io, T &l) {
  io(l.page_size);
  io(l.first);
  io(l.requests);
  io(l.lens);
}

template <class Io, Is<Buffer> T>
void item(Io &io, T &b) {
  io(b.name);
  io(b.output);
  io(b.bytes);
  io(b.live);
}

template <class Io, Is<CacheView> T>
void item(Io &io, T &c) {
  for (auto *field : {&c.k, &c.v, &c.table, &c.lens, &c.indptr, &c.size, &c.first_page, &c.rows,
                      &c.max_pages, &c.page_size, &c.pool_pages})
    io(*field);
  for (auto *field :
       {&c.k_page, &c.k_token, &c.k_head, &c.v_page, &c.v_token, &c.v_head, &c.table_stride})
    io(*field);
  io(c.len);
  io(c.physical);
}

/// Every field of a case (process_sut_test says when one is missing).
template <class Io, class T>
void problem(Io &io, T &p) {
  io(p.family), io(p.dtype), io(p.lse_base), io(p.has_lse), io(p.batch), io(p.num_kv_heads);
  io(p.group_size), io(p.head_dim), io(p.page_size), io(p.k_layout), io(p.v_layout);
  io(p.seq_lens), io(p.sharing), io(p.spare_pages), io(p.huge_pool), io(p.table_pad);
  io(p.placement), io(p.placement_seed), io(p.page_ids), io(p.levels), io(p.scale);
  io(p.num_splits), io(p.q_pad), io(p.o_pad), io(p.k_pad), io(p.v_pad), io(p.lse_pad);
  io(p.q), io(p.k), io(p.v), io(p.num_states), io(p.ragged), io(p.lse_regime), io(p.in_place);
  io(p.poison), io(p.schedule), io(p.kv), io(p.k_scale), io(p.v_scale), io(p.kv_scales);
  io(p.q_len), io(p.window), io(p.softcap), io(p.alibi), io(p.sinks), io(p.feature_seed);
  io(p.even_lengths), io(p.early_start);
}

template <class Io, class T>
void tensors(Io &io, T &t) {
  problem(io, t.problem);
  io(t.buffers);
  for (auto *view : {&t.q, &t.o, &t.lse, &t.in_o[0], &t.in_o[1], &t.in_lse[0], &t.in_lse[1]})
    io(*view);
  for (auto *index : {&t.k_scale, &t.v_scale, &t.slopes, &t.sinks, &t.indptr})
    io(*index);
  io(t.caches);
  io(t.first_state);
  io(t.numbers);
}

template <class Io, class T>
void outcome(Io &io, T &r) {
  io(r.status);
  io(r.message);
  io(r.hazards);
  io(r.violations);
}

void count(Packer &io, const RunResult &r) {
  io(uint64_t{r.counters.size()});
  for (const auto &[name, value] : r.counters) {
    io(name);
    io(value);
  }
}
void count(Unpacker &io, RunResult &r) {
  uint64_t size = 0;
  for (io(size); size > 0; --size) {
    std::string name;
    io(name);
    io(r.counters[name]);
  }
}

} // namespace

Message pack_request(Question question, const Tensors &t) {
  Packer io;
  io(question);
  tensors(io, t);
  return std::move(io.bytes);
}

Request unpack_request(std::span<const std::byte> bytes) {
  Unpacker io(bytes);
  Request request;
  io(request.question);
  tensors(io, request.tensors);
  return request;
}

Message pack_reply(const RunResult &result, const Tensors &t) {
  Packer io;
  outcome(io, result);
  count(io, result);
  for (const Buffer &b : t.buffers)
    io(b.bytes);
  io(t.numbers);
  return std::move(io.bytes);
}

bool unpack_reply(std::span<const std::byte> bytes, RunResult &result, Tensors &t) {
  RunResult r;
  std::vector<std::vector<std::byte>> left(t.buffers.size());
  std::vector<FieldNumber> numbers;
  try {
    Unpacker io(bytes);
    outcome(io, r);
    count(io, r);
    for (size_t i = 0; i < left.size(); ++i) {
      io(left[i]);
      if (left[i].size() != t.buffers[i].bytes.size()) return false;
    }
    io(numbers);
    if (!io.done()) return false;
  } catch (const std::out_of_range &) {
    return false;
  }
  result = std::move(r);
  for (size_t i = 0; i < left.size(); ++i)
    t.buffers[i].bytes = std::move(left[i]);
  t.numbers = std::move(numbers);
  return true;
}

Message pack_key_order(const KeyOrderAnswer &answer) {
  Packer io;
  item(io, answer);
  return std::move(io.bytes);
}

bool unpack_key_order(std::span<const std::byte> bytes, int requests, KeyOrderAnswer &answer) {
  try {
    Unpacker io(bytes);
    item(io, answer);
    if (!io.done()) return false;
  } catch (const std::out_of_range &) {
    return false;
  }
  if (!answer.error.empty()) return true;
  const std::vector<int64_t> &first = answer.order.first;
  return first.size() == static_cast<size_t>(requests) + 1 && first[0] == 0 &&
         std::is_sorted(first.begin(), first.end()) &&
         static_cast<size_t>(first.back()) == answer.order.tiles.size();
}

Message pack_lines(const std::vector<std::string> &lines) {
  Packer io;
  io(lines);
  return std::move(io.bytes);
}

bool unpack_lines(std::span<const std::byte> bytes, std::vector<std::string> &lines) {
  try {
    Unpacker io(bytes);
    io(lines);
    return io.done();
  } catch (const std::out_of_range &) {
    return false;
  }
}

} // namespace assay::wire
