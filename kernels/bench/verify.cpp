// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>

namespace assay::bench {
namespace {

constexpr unsigned char kPoison = 0xff; // NaN in every type
constexpr size_t kMaxLines = 8;         // of one kind of finding

size_t bytes_of(assay_dtype dtype) { return dtype == ASSAY_E4M3 || dtype == ASSAY_E5M2 ? 1 : 2; }

/// o and lse with their bands.
struct Outputs {
  std::vector<std::byte> o, lse;
};

struct Extent {
  int64_t rows, o_elements;
  explicit Extent(const assay_paged_params &p)
      : rows(int64_t{p.batch} * p.q_len * p.num_qo_heads), o_elements(rows * p.head_dim) {}
  size_t o_bytes() const { return static_cast<size_t>(o_elements) * 2; }
  size_t lse_bytes() const { return static_cast<size_t>(rows) * sizeof(float); }
};

std::byte *before(void *data) { return static_cast<std::byte *>(data) - kBandBytes; }

std::vector<std::byte> read_banded(const Memory &memory, void *data, size_t bytes) {
  std::vector<std::byte> out(bytes + 2 * kBandBytes);
  memory.read(out.data(), before(data), out.size(), out.size(), 1);
  return out;
}

Outputs run_poisoned(const TimedCall &call, const Memory &memory) {
  const assay_paged_params &p = call.params;
  const Extent extent(p);
  memory.fill(before(p.o), kPoison, extent.o_bytes() + 2 * kBandBytes);
  memory.fill(before(p.lse), kPoison, extent.lse_bytes() + 2 * kBandBytes);
  if (p.workspace != nullptr) memory.fill(p.workspace, kPoison, p.workspace_bytes);
  call.run();
  return {read_banded(memory, p.o, extent.o_bytes()),
          read_banded(memory, p.lse, extent.lse_bytes())};
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

/// "request 3 head 5" of a row of a dense output.
std::string row_name(const assay_paged_params &p, int64_t row) {
  const int64_t query = row / p.num_qo_heads;
  return fmt::format("request {}{} head {}", query / p.q_len,
                     p.q_len > 1 ? fmt::format(" token {}", query % p.q_len) : "",
                     row % p.num_qo_heads);
}

/// Both outputs as the elements they hold.
struct Elements {
  explicit Elements(const Outputs &outputs)
      : o(reinterpret_cast<const uint16_t *>(outputs.o.data() + kBandBytes)),
        lse(reinterpret_cast<const uint32_t *>(outputs.lse.data() + kBandBytes)) {}
  const uint16_t *o;
  const uint32_t *lse;
};

void check_same_bits(const assay_paged_params &p, const Elements &first, const Elements &second,
                     Verification &out) {
  Lines lines(out);
  for (int64_t i = 0; i < Extent(p).o_elements; ++i)
    if (first.o[i] != second.o[i])
      lines.add(fmt::format("{} dim {}: bits {:04x}, and {:04x} in a second run",
                            row_name(p, i / p.head_dim), i % p.head_dim, first.o[i], second.o[i]));
  for (int64_t row = 0; row < Extent(p).rows; ++row)
    if (first.lse[row] != second.lse[row])
      lines.add(fmt::format("{} lse: bits {:08x}, and {:08x} in a second run", row_name(p, row),
                            first.lse[row], second.lse[row]));
}

/// Values by their bits: finite, or what an empty row holds.
void check_values(const TimedCall &call, const Elements &outputs, Verification &out) {
  const assay_paged_params &p = call.params;
  const uint16_t exponent = p.dtype == ASSAY_FP16 ? 0x7c00 : 0x7f80;
  Lines lines(out);
  for (int64_t row = 0; row < Extent(p).rows; ++row) {
    const int64_t query = row / p.num_qo_heads;
    const bool empty = call.seq_lens[query / p.q_len] - p.q_len + query % p.q_len < 0;
    for (int64_t i = row * p.head_dim; i < (row + 1) * p.head_dim; ++i) {
      const uint16_t bits = outputs.o[i];
      if (empty ? (bits & 0x7fff) != 0 : (bits & exponent) == exponent)
        lines.add(fmt::format("{} dim {}: bits {:04x}, expected {}", row_name(p, row),
                              i % p.head_dim, bits,
                              empty ? "0 of an empty row" : "a finite value"));
    }
    float lse;
    std::memcpy(&lse, outputs.lse + row, sizeof lse);
    if (empty && p.sinks == nullptr ? lse != -INFINITY : !std::isfinite(lse))
      lines.add(fmt::format("{} lse: {}, expected {}", row_name(p, row), lse,
                            empty ? "-inf of an empty row" : "a finite value"));
  }
}

/// Copies one kv head's keys or values of a request, in token order.
std::vector<std::byte> gather(const TimedCall &call, const Memory &memory, const void *pool,
                              int request, int64_t head_offset, int64_t page_stride,
                              int64_t token_stride) {
  const assay_paged_params &p = call.params;
  const auto size = static_cast<int64_t>(bytes_of(p.kv_dtype));
  const int64_t row_bytes = p.head_dim * size;
  const int32_t len = call.seq_lens[request];
  std::vector<std::byte> out(std::max<int64_t>(len, 1) * row_bytes);
  for (int32_t token = 0; token < len; token += p.kv.page_size) {
    const int64_t page = call.page_table[request * p.kv.page_table_stride + token / p.kv.page_size];
    memory.read(out.data() + token * row_bytes,
                static_cast<const std::byte *>(pool) + (page * page_stride + head_offset) * size,
                row_bytes, token_stride * size, std::min(len - token, p.kv.page_size));
  }
  return out;
}

std::vector<float> read_floats(const Memory &memory, const float *from, int64_t first, int n) {
  if (from == nullptr) return {};
  std::vector<float> out(n);
  memory.read(out.data(), from + first, n * sizeof(float), n * sizeof(float), 1);
  return out;
}

const float *or_null(const std::vector<float> &v) { return v.empty() ? nullptr : v.data(); }

/// The query rows of the group: q, o and lse, each dense [q_len, group, ...].
void sample_queries(const TimedCall &call, const Memory &memory, const Outputs &outputs,
                    SampledRows &to) {
  const assay_paged_params &p = call.params;
  const int group = p.num_qo_heads / p.num_kv_heads, first = to.kv_head * group;
  const size_t row = static_cast<size_t>(p.head_dim) * 2;
  to.q.resize(p.q_len * group * row);
  for (int token = 0; token < p.q_len; ++token) {
    const int64_t at =
        to.request * p.q_stride_batch + token * p.q_stride_token + first * p.q_stride_head;
    memory.read(to.q.data() + token * group * row, static_cast<const uint16_t *>(p.q) + at, row,
                p.q_stride_head * 2, group);
    const int64_t out = (int64_t{to.request} * p.q_len + token) * p.num_qo_heads + first;
    const std::byte *o = outputs.o.data() + kBandBytes + out * row;
    to.o.insert(to.o.end(), o, o + group * row);
    const Elements elements(outputs);
    for (int g = 0; g < group; ++g) {
      float lse;
      std::memcpy(&lse, elements.lse + out + g, sizeof lse);
      to.lse.push_back(lse);
    }
  }
}

std::unique_ptr<SampledRows> sample(const TimedCall &call, const Memory &memory,
                                    const Outputs &outputs, int request, int kv_head) {
  const assay_paged_params &p = call.params;
  const int group = p.num_qo_heads / p.num_kv_heads;
  auto rows = std::make_unique<SampledRows>();
  SampledRows &to = *rows;
  to.request = request;
  to.kv_head = kv_head;
  to.len = call.seq_lens[request];
  sample_queries(call, memory, outputs, to);
  to.k = gather(call, memory, p.kv.k, request, kv_head * p.kv.k_stride_head, p.kv.k_stride_page,
                p.kv.k_stride_token);
  to.v = gather(call, memory, p.kv.v, request, kv_head * p.kv.v_stride_head, p.kv.v_stride_page,
                p.kv.v_stride_token);
  to.k_scale = read_floats(memory, p.k_scale, kv_head * p.k_scale_stride, 1);
  to.v_scale = read_floats(memory, p.v_scale, kv_head * p.v_scale_stride, 1);
  to.slopes = read_floats(memory, p.alibi_slopes, kv_head * group, group);
  to.sinks = read_floats(memory, p.sinks, kv_head * group, group);
  const int64_t d = p.head_dim, page = std::max(to.len, 1);
  to.params = p;
  to.params.batch = to.params.num_kv_heads = 1;
  to.params.num_qo_heads = group;
  to.params.q = to.q.data();
  to.params.o = to.o.data();
  to.params.lse = to.lse.data();
  to.params.q_stride_batch = to.params.o_stride_batch = p.q_len * group * d;
  to.params.q_stride_token = to.params.o_stride_token = group * d;
  to.params.q_stride_head = to.params.o_stride_head = d;
  to.params.lse_stride_batch = p.q_len * group;
  to.params.lse_stride_token = group;
  to.params.lse_stride_head = 1;
  assay_paged_kv &kv = to.params.kv;
  kv.k = to.k.data();
  kv.v = to.v.data();
  kv.k_stride_page = kv.v_stride_page = kv.k_stride_head = kv.v_stride_head = page * d;
  kv.k_stride_token = kv.v_stride_token = d;
  kv.page_table = &to.page;
  kv.seq_lens = &to.len;
  kv.page_table_stride = kv.rows = kv.max_pages = 1;
  kv.page_size = static_cast<int32_t>(page);
  to.params.k_scale = or_null(to.k_scale);
  to.params.v_scale = or_null(to.v_scale);
  to.params.alibi_slopes = or_null(to.slopes);
  to.params.sinks = or_null(to.sinks);
  to.params.workspace = to.params.plan = to.params.stream = nullptr;
  return rows;
}

} // namespace

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

Verification verify_call(const TimedCall &call, const Memory &memory, const Judge &judge) {
  Verification out;
  const assay_paged_params &p = call.params;
  const Outputs first = run_poisoned(call, memory), second = run_poisoned(call, memory);
  for (const Outputs *outputs : {&first, &second}) {
    check_bands("o", outputs->o, out);
    check_bands("lse", outputs->lse, out);
  }
  check_same_bits(p, Elements(first), Elements(second), out);
  check_values(call, Elements(first), out);
  std::vector<std::unique_ptr<SampledRows>> rows;
  for (int request : sample_requests(call.seq_lens)) {
    // Two neighbours, others for each request.
    const int head = (request * 5 + 1) % p.num_kv_heads, other = (head + 1) % p.num_kv_heads;
    rows.push_back(sample(call, memory, first, request, head));
    if (other != head) rows.push_back(sample(call, memory, first, request, other));
  }
  judge(call, rows, out);
  return out;
}

} // namespace assay::bench
