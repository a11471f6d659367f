// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/wire.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/pfr.hpp>

#include "properties/sut/device_oracle.h"

namespace assay::wire {
namespace {

template <class T>
constexpr bool kIsArray = false;
template <class T, size_t N>
constexpr bool kIsArray<std::array<T, N>> = true;

/// What is as wide as its values, without gaps between them.
template <class T>
concept Dense = std::has_unique_object_representations_v<T> && std::is_trivially_copyable_v<T>;
/// An arithmetic has no gaps either; its doubles may have equal values of unlike bytes.
static_assert(sizeof(assay_arithmetic) == 32 * sizeof(int32_t) + 5 * sizeof(double));
template <class T>
concept Bytes = Dense<T> || std::is_floating_point_v<T> || std::is_same_v<T, assay_arithmetic>;
/// Whatever else has fields: all of them go, in their order, and nobody keeps a list.
template <class T>
concept Fields = std::is_aggregate_v<T> && !Bytes<T>;

class Packer {
public:
  Message bytes;

  template <class T>
  requires Bytes<T>
  void operator()(const T &value) { append(&value, sizeof value); }
  template <class T>
  requires Fields<T>
  void operator()(const T &value) {
    if constexpr (kIsArray<T>)
      for (const auto &item : value)
        (*this)(item);
    else
      boost::pfr::for_each_field(value, [this](const auto &field) { (*this)(field); });
  }
  template <class T>
  void operator()(const std::vector<T> &values) {
    (*this)(uint64_t{values.size()});
    if constexpr (Dense<T>)
      append(values.data(), values.size() * sizeof(T));
    else
      for (const T &value : values)
        (*this)(value);
  }
  void operator()(const std::string &text) { (*this)(std::vector<char>(text.begin(), text.end())); }
  template <class K, class V>
  void operator()(const std::map<K, V> &entries) {
    (*this)(uint64_t{entries.size()});
    for (const auto &[key, value] : entries)
      (*this)(key), (*this)(value);
  }
  void operator()(const Buffer &b) {
    (*this)(b.name), (*this)(b.output), (*this)(b.offset), (*this)(uint64_t{b.bytes.size()});
  }

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
  requires Bytes<T>
  void operator()(T &value) { take(&value, sizeof value); }
  template <class T>
  requires Fields<T>
  void operator()(T &value) {
    if constexpr (kIsArray<T>)
      for (auto &item : value)
        (*this)(item);
    else
      boost::pfr::for_each_field(value, [this](auto &field) { (*this)(field); });
  }
  template <class T>
  void operator()(std::vector<T> &values) {
    const uint64_t count = size();
    if constexpr (Dense<T>) {
      if (count * sizeof(T) > bytes_.size()) throw std::out_of_range("count");
      values.resize(count);
      take(values.data(), count * sizeof(T));
    } else {
      values.resize(count);
      for (T &value : values)
        (*this)(value);
    }
  }
  void operator()(std::string &text) {
    std::vector<char> letters;
    (*this)(letters);
    text.assign(letters.begin(), letters.end());
  }
  template <class K, class V>
  void operator()(std::map<K, V> &entries) {
    for (uint64_t count = size(); count > 0; --count) {
      K key;
      (*this)(key);
      (*this)(entries[key]);
    }
  }
  void operator()(Buffer &b) {
    uint64_t bytes = 0;
    (*this)(b.name), (*this)(b.output), (*this)(b.offset), (*this)(bytes);
    b.bytes.resize(bytes); // this is a request, from the harness itself
  }

private:
  /// Every element takes a byte at least: a count that lies allocates nothing.
  uint64_t size() {
    uint64_t count = 0;
    (*this)(count);
    if (count > bytes_.size()) throw std::out_of_range("count");
    return count;
  }
  void take(void *to, size_t size) {
    if (size > bytes_.size()) throw std::out_of_range("short");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;
};

template <class... T>
Message packed(const T &...values) {
  Packer io;
  (io(values), ...);
  return std::move(io.bytes);
}

/// False for anything but these, whole.
template <class... T>
bool unpacked(std::span<const std::byte> bytes, T &...values) {
  try {
    Unpacker io(bytes);
    (io(values), ...);
    return io.done();
  } catch (const std::out_of_range &) {
    return false;
  }
}

} // namespace

Message pack_request(Question question, uint64_t shared_bytes, const Tensors &t) {
  return packed(question, shared_bytes, t);
}

Request unpack_request(std::span<const std::byte> bytes) {
  Request request;
  Unpacker{bytes}(request);
  return request;
}

Message pack_reply(const RunResult &result, const Tensors &t) { return packed(result, t.numbers); }

bool unpack_reply(std::span<const std::byte> bytes, RunResult &result, Tensors &t) {
  RunResult r;
  std::vector<FieldNumber> numbers;
  if (!unpacked(bytes, r, numbers)) return false;
  const auto known = [](const auto &item) { return item.kind <= item.kLast; };
  if (!std::ranges::all_of(r.hazards, known) || !std::ranges::all_of(r.violations, known))
    return false;
  result = std::move(r);
  t.numbers = std::move(numbers);
  return true;
}

Message pack_key_order(const KeyOrderAnswer &answer) { return packed(answer); }

bool unpack_key_order(std::span<const std::byte> bytes, int requests, KeyOrderAnswer &answer) {
  if (!unpacked(bytes, answer) || answer.kind > oracle::OrderError::kLast) return false;
  if (!answer.error.empty()) return true;
  const std::vector<int64_t> &first = answer.order.first;
  return first.size() == static_cast<size_t>(requests) + 1 && first[0] == 0 &&
         std::ranges::is_sorted(first) &&
         static_cast<size_t>(first.back()) == answer.order.tiles.size();
}

Message pack_answers(const std::vector<WrongAnswer> &answers) { return packed(answers); }

bool unpack_answers(std::span<const std::byte> bytes, std::vector<WrongAnswer> &answers) {
  std::vector<WrongAnswer> read;
  if (!unpacked(bytes, read)) return false;
  for (const WrongAnswer &answer : read)
    if (!std::ranges::all_of(answer.ended, [](const Hazard &h) { return h.kind <= h.kLast; }))
      return false;
  answers = std::move(read);
  return true;
}

Message pack_judged_call(const JudgedCall &call) { return packed(call); }

JudgedCall unpack_judged_call(std::span<const std::byte> bytes) {
  JudgedCall call;
  Unpacker{bytes}(call);
  return call;
}

Message pack_judged_reply(const JudgedReply &reply) { return packed(reply); }

bool unpack_judged_reply(std::span<const std::byte> bytes, JudgedReply &reply) {
  return unpacked(bytes, reply);
}

} // namespace assay::wire
