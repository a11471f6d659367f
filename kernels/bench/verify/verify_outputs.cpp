// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify/verify_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>

namespace assay::bench {
namespace {

constexpr unsigned char kPoison = 0xff; // NaN in every type
constexpr size_t kMaxLines = 8;         // lines of one kind of finding

size_t o_bytes(const CheckedOutputs &call) {
  return static_cast<size_t>(call.rows) * call.head_dim * sizeof(uint16_t);
}
size_t lse_bytes(const CheckedOutputs &call) {
  return static_cast<size_t>(call.rows) * sizeof(float);
}

std::byte *before(void *data) { return static_cast<std::byte *>(data) - kBandBytes; }

Outputs run_poisoned(const CheckedOutputs &call, const Memory &memory) {
  const size_t o = o_bytes(call) + 2 * kBandBytes, lse = lse_bytes(call) + 2 * kBandBytes;
  memory.fill(before(call.o), kPoison, o);
  memory.fill(before(call.lse), kPoison, lse);
  if (call.workspace != nullptr) memory.fill(call.workspace, kPoison, call.workspace_bytes);
  call.run();
  return {memory.bytes_at(before(call.o), o), memory.bytes_at(before(call.lse), lse)};
}

/// Collects lines of one kind; past the first few it only counts.
class Lines {
public:
  explicit Lines(Verification &out) : out_(out) {}
  ~Lines() {
    if (count_ > kMaxLines) out_.findings.push_back(fmt::format("and {} more", count_ - kMaxLines));
  }
  void add(const std::string &line) {
    if (++count_ <= kMaxLines) out_.findings.push_back(line);
  }

private:
  Verification &out_;
  size_t count_ = 0;
};

void check_bands(const char *name, const std::vector<std::byte> &bytes, Verification &out) {
  const auto written = [](std::byte b) { return b != std::byte{kPoison}; };
  const auto front = std::count_if(bytes.begin(), bytes.begin() + kBandBytes, written);
  const auto back = std::count_if(bytes.end() - kBandBytes, bytes.end(), written);
  if (front + back > 0)
    out.findings.push_back(
        fmt::format("{}: {} bytes in front of it and {} behind it written", name, front, back));
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

void check_same_bits(const CheckedOutputs &call, const Outputs &first, const Outputs &second,
                     Verification &out) {
  Lines lines(out);
  for (int64_t i = 0; i < call.rows * call.head_dim; ++i)
    if (first.o()[i] != second.o()[i])
      lines.add(fmt::format("{} dim {}: bits {:04x}, and {:04x} in a second run",
                            call.row_name(i / call.head_dim), i % call.head_dim, first.o()[i],
                            second.o()[i]));
  for (int64_t row = 0; row < call.rows; ++row)
    if (bits_of(first.lse()[row]) != bits_of(second.lse()[row]))
      lines.add(fmt::format("{} lse: bits {:08x}, and {:08x} in a second run", call.row_name(row),
                            bits_of(first.lse()[row]), bits_of(second.lse()[row])));
}

/// Values by their bits: finite, or what an empty row holds.
void check_values(const CheckedOutputs &call, const Outputs &outputs, Verification &out) {
  const uint16_t exponent = call.dtype == ASSAY_FP16 ? 0x7c00 : 0x7f80;
  Lines lines(out);
  for (int64_t row = 0; row < call.rows; ++row) {
    const RowIs is = call.row_is(row);
    const bool empty = is != RowIs::kFinite;
    for (int64_t i = row * call.head_dim; i < (row + 1) * call.head_dim; ++i) {
      const uint16_t bits = outputs.o()[i];
      if (empty ? (bits & 0x7fff) != 0 : (bits & exponent) == exponent)
        lines.add(fmt::format("{} dim {}: bits {:04x}, expected {}", call.row_name(row),
                              i % call.head_dim, bits,
                              empty ? "0 of an empty row" : "a finite value"));
    }
    const float lse = outputs.lse()[row];
    if (is == RowIs::kEmpty ? lse != -INFINITY : !std::isfinite(lse))
      lines.add(fmt::format("{} lse: {}, expected {}", call.row_name(row), lse,
                            is == RowIs::kEmpty ? "-inf of an empty row" : "a finite value"));
  }
}

} // namespace

std::vector<std::byte> Memory::bytes_at(const void *from, size_t bytes) const {
  std::vector<std::byte> out(bytes);
  read(out.data(), from, bytes, bytes, 1);
  return out;
}

Outputs check_outputs(const CheckedOutputs &call, const Memory &memory, Verification &out) {
  Outputs first = run_poisoned(call, memory);
  const Outputs second = run_poisoned(call, memory);
  for (const Outputs *outputs : {static_cast<const Outputs *>(&first), &second}) {
    check_bands("o", outputs->o_banded, out);
    check_bands("lse", outputs->lse_banded, out);
  }
  check_same_bits(call, first, second, out);
  check_values(call, first, out);
  return first;
}

std::vector<int> sample_requests(const std::vector<int32_t> &seq_lens) {
  const int n = static_cast<int>(seq_lens.size());
  if (n == 0) return {};
  const auto key = [&](int i) { // empty rows count as the longest
    return seq_lens[i] > 0 ? seq_lens[i] : std::numeric_limits<int32_t>::max();
  };
  int longest = 0, shortest = 0;
  for (int i = 1; i < n; ++i) {
    if (seq_lens[i] > seq_lens[longest]) longest = i;
    if (key(i) < key(shortest)) shortest = i;
  }
  std::mt19937 rng(n);
  std::vector<int> chosen = {0, n - 1, longest, shortest, int(rng() % n), int(rng() % n)};
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::vector<int> sample_heads(int request, int num_heads) {
  const int head = (request * 5 + 1) % num_heads, other = (head + 1) % num_heads;
  return other == head ? std::vector<int>{head} : std::vector<int>{head, other};
}

} // namespace assay::bench
