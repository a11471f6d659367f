// SPDX-License-Identifier: Apache-2.0
#include "properties/call/buffers.h"

#include <algorithm>
#include <cstring>

#include "properties/call/element.h"
#include "properties/case/hash.h"

namespace assay {
namespace {

constexpr size_t kMinBytes = 16;

/// Every element of a buffer, of sizes that the compiler knows: drawn cases have millions.
template <class Bits>
void fill_poison(std::vector<std::byte> &bytes, Poison poison, Dtype dtype, uint64_t salt) {
  auto bits = static_cast<Bits>(poison_bits(poison, dtype, salt));
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    if (poison == Poison::kRandomBits)
      bits = static_cast<Bits>(poison_bits(poison, dtype, salt + i));
    std::memcpy(bytes.data() + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

} // namespace

int add_buffer(Tensors &t, const std::string &name, bool output, size_t elements, Dtype dtype,
               size_t alignment) {
  int size = element_size(dtype);
  Buffer b{name,
           output,
           std::vector<std::byte>(std::max(kMinBytes, elements * size)),
           {},
           base_offset(t.problem, name, alignment)};
  b.live.assign(b.bytes.size(), 0);
  t.buffers.push_back(std::move(b));
  int index = static_cast<int>(t.buffers.size()) - 1;
  const uint64_t salt = hash_values(t.problem.v.seed, index);
  std::vector<std::byte> &bytes = t.buffers.back().bytes;
  const Poison poison = t.problem.poison;
  if (size == 1)
    fill_poison<uint8_t>(bytes, poison, dtype, salt);
  else if (size == 2)
    fill_poison<uint16_t>(bytes, poison, dtype, salt);
  else
    fill_poison<uint32_t>(bytes, poison, dtype, salt);
  return index;
}

void mark_live(Tensors &t, int buffer, int size, int64_t index, int count) {
  auto &live = t.buffers[buffer].live;
  std::fill_n(live.begin() + index * size, static_cast<size_t>(count) * size, uint8_t{1});
}

int add_floats(Tensors &t, const std::string &name, const std::vector<float> &values) {
  int index = add_buffer(t, name, false, values.size(), Dtype::kFp32);
  for (size_t i = 0; i < values.size(); ++i)
    t.set_scalar(index, static_cast<int>(i), values[i]);
  mark_live(t, index, 4, 0, static_cast<int>(values.size()));
  return index;
}

int add_ints(Tensors &t, const std::string &name, const std::vector<int> &values) {
  int index = add_buffer(t, name, false, values.size(), Dtype::kFp32);
  for (size_t i = 0; i < values.size(); ++i)
    t.set_element(index, 4, i, static_cast<uint32_t>(values[i]));
  mark_live(t, index, 4, 0, static_cast<int>(values.size()));
  return index;
}

} // namespace assay
