// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge_checks.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "fuzz/byte_reader.h"

namespace assay::fuzz {
namespace {

constexpr int kMaxBytes = 1 << 16; // the size of one array: larger ones get no memory

int element_bytes(int32_t dtype) {
  switch (dtype) {
  case ASSAY_INT64:
    return 8;
  case ASSAY_FP32:
  case ASSAY_INT32:
    return 4;
  case ASSAY_FP16:
  case ASSAY_BF16:
    return 2;
  default:
    return 1;
  }
}

/// A call whose arrays own their memory.
class Call {
public:
  explicit Call(ByteReader &in) : in_(in) {
    params.struct_size = sizeof params;
    const int rows = in.integer(0, 6), heads = in.integer(1, 4), dim = in.integer(1, 8);
    const int requests = in.integer(0, 4), pages = in.integer(0, 6), slots = in.integer(1, 5);
    const int kv_heads = in.integer(1, 3);
    const int32_t type = in.integer(0, 1);
    params.causal = in.integer(0, 1);
    // Which keys there are comes first: a short input still has some.
    params.seq_lens = integers({requests}, 0, given() ? pages * slots + 1 : slots);
    if (given()) params.page_table = integers({requests, in.integer(0, 5)}, 0, pages);
    if (given()) params.qo_indptr = integers({requests + 1}, 0, rows + 1);
    if (given()) params.page_indptr = integers({requests + 1}, 0, 6);
    if (given()) params.v_page_table = integers({requests, in.integer(0, 5)}, 0, pages);
    params.out = numbers({rows, heads, dim}, type);
    params.q = numbers({rows, heads, dim}, type);
    params.k = numbers({pages, slots, kv_heads, dim}, type);
    params.v = numbers({pages, slots, kv_heads, dim}, type);
    if (given()) params.lse = numbers({rows, heads}, ASSAY_FP32);
    if (given()) params.k_scale = numbers({kv_heads}, ASSAY_FP32);
    if (given()) params.v_scale = numbers({1}, ASSAY_FP32);
    if (given()) params.alibi_slopes = numbers({heads}, ASSAY_FP32);
    if (given()) params.sinks = numbers({heads}, ASSAY_FP32);
    params.sm_scale = given() ? in.number() : 0.5f;
    params.logits_soft_cap = given() ? in.number() : 0.0f;
    params.window_left = one_below(10) - 1;
    params.window_right = one_below(10) - 1;
    params.lse_base = in.integer(0, 2);
    params.empty_lse = one_below(3);
    params.max_rows = one_below(8);
    params.threads = 1;
    params.arithmetic.p_format = in.integer(0, 5);
    params.arithmetic.sum_format = in.integer(0, 4);
    params.arithmetic.exp2_rel_error = params.arithmetic.rcp_rel_error = 0x1p-22;
    if (given()) params.mask = numbers({in.integer(0, 40)}, ASSAY_UINT8);
    if (given()) params.mask_indptr = integers({requests + 1}, 0, 41);
    if (given()) {
      for (assay_array *array : {&params.q, &params.k, &params.v})
        *array = array == &params.q ? numbers({rows, heads, dim}, ASSAY_E4M3)
                                    : numbers({pages, slots, kv_heads, dim}, ASSAY_E4M3);
      if (given()) params.q_scale = numbers({heads}, ASSAY_FP32);
      if (given()) params.q_scale = numbers({rows, heads}, ASSAY_FP32);
    }
    if (given()) {
      params.out = numbers({rows, heads, dim}, in.integer(0, 1) ? ASSAY_E5M2 : ASSAY_E4M3);
      if (given()) params.o_scale = numbers({1}, ASSAY_FP32);
    }
    if (!given()) return;
    const int32_t narrow = in.integer(0, 1) ? int32_t{ASSAY_INT8} : int32_t{ASSAY_E4M3};
    const int blocks = in.integer(0, 4); // 0: a scale a token
    for (assay_array *array : {&params.k, &params.v})
      *array = numbers({pages, slots, kv_heads, dim}, narrow);
    for (assay_array *array : {&params.k_scale, &params.v_scale})
      *array = blocks ? numbers({pages, slots, kv_heads, blocks}, ASSAY_FP32)
                      : numbers({pages, slots, kv_heads}, ASSAY_FP32);
  }

  assay_judge_attention_params params{};

private:
  /// 0 .. most and, of the last value, one below 0.
  int one_below(int most) {
    const int value = in_.integer(0, most + 1);
    return value > most ? -1 : value;
  }
  bool given() { return in_.integer(0, 3) == 1; }

  /// Dense, but where the input says otherwise of type, an axis or a stride.
  assay_array array(std::initializer_list<int> shape, int32_t dtype) {
    assay_array a{};
    a.dtype = in_.integer(0, 15) == 1 ? in_.integer(0, 34) : dtype;
    a.dims = static_cast<int32_t>(shape.size());
    int axis = 0;
    for (int size : shape)
      a.shape[axis++] = in_.integer(0, 31) == 1 ? in_.integer(-1, 9) : size;
    for (int64_t i = a.dims - 1, dense = 1; i >= 0; --i) {
      a.stride[i] = in_.integer(0, 15) == 1 ? in_.integer(-1, 40) : dense;
      dense *= std::max<int64_t>(a.shape[i], 1);
    }
    if (in_.integer(0, 63) == 1) a.dims = in_.integer(0, 5);
    return a;
  }
  /// Memory for exactly what shape and strides reach. (The heap block's end is the last element's.)
  unsigned char *memory(assay_array &a) {
    int64_t last = 0;
    bool empty = false;
    for (int i = 0; i < std::clamp<int>(a.dims, 0, 4); ++i) {
      empty |= a.shape[i] <= 0;
      last += (a.shape[i] - 1) * a.stride[i];
    }
    const int64_t bytes = empty || last < 0 ? 1 : (last + 1) * element_bytes(a.dtype);
    if (bytes > kMaxBytes) return nullptr;
    blocks_.emplace_back(new unsigned char[static_cast<size_t>(bytes)]);
    unsigned char *block = blocks_.back().get();
    const uint8_t fill = in_.byte();
    for (int64_t i = 0; i < bytes; ++i) // numbers between 2^-8 and 2 in 16 bits, and whatever else
      block[i] = static_cast<unsigned char>(fill >= 128 ? in_.byte()
                                            : i % 2     ? 0x3c + (i * fill) % 4
                                                        : i * fill);
    a.data = block;
    return block;
  }
  assay_array numbers(std::initializer_list<int> shape, int32_t dtype) {
    assay_array a = array(shape, dtype);
    memory(a);
    return a;
  }
  assay_array integers(std::initializer_list<int> shape, int low, int high) {
    assay_array a = array(shape, in_.integer(0, 1) == 0 ? ASSAY_INT32 : ASSAY_INT64);
    unsigned char *block = memory(a);
    const int bytes = element_bytes(a.dtype);
    if (block == nullptr || bytes < 4) return a;
    const auto store = [&](int64_t at, int64_t value) {
      std::memcpy(block + at * bytes, &value, static_cast<size_t>(bytes));
    };
    if (a.dims < 1 || a.dims > 2 || a.shape[0] <= 0 || a.stride[0] < 0) return a;
    const int64_t columns = a.dims == 2 ? a.shape[1] : 1;
    if (a.dims == 2 && (columns <= 0 || a.stride[1] < 0)) return a;
    for (int64_t row = 0; row < a.shape[0]; ++row)
      for (int64_t column = 0; column < columns; ++column)
        store(row * a.stride[0] + (a.dims == 2 ? column * a.stride[1] : 0),
              in_.integer(0, 31) == 1 ? static_cast<int32_t>(in_.word()) : in_.integer(low, high));
    return a;
  }

  ByteReader &in_;
  std::deque<std::unique_ptr<unsigned char[]>> blocks_;
};

std::string check_refusal(assay_status status, const std::string &message) {
  if (status != ASSAY_INVALID_ARGUMENT && status != ASSAY_UNSUPPORTED)
    return "status " + std::to_string(status) + ": " + message;
  if (message.empty()) return "a refusal without a word";
  for (char c : message)
    if (c < ' ' || c > '~') return "control characters in a refusal";
  return "";
}

std::string check_report(const assay_judge_report &r) {
  if (r.verdict < ASSAY_JUDGE_INSIDE || r.verdict > ASSAY_JUDGE_UNDECIDED) return "no such verdict";
  if (r.claimed > r.elements) return "more claimed than there is";
  if (r.findings > r.claimed * 3 + 1) return "more findings than elements and tiers";
  if (r.rows_judged > r.rows || r.rows_judged < 0) return "more rows judged than there are";
  if ((r.verdict == ASSAY_JUDGE_INSIDE) != (r.findings == 0)) return "verdict and findings differ";
  if (r.verdict != ASSAY_JUDGE_INSIDE && r.worst.reason[0] == 0)
    return "a finding without a reason";
  return "";
}

} // namespace

std::string check_judge_with(const JudgeUnderTest &judge, Input input) {
  ByteReader in(input);
  Call call(in);
  assay_judge_report report{};
  report.struct_size = sizeof report;
  const assay_status status = judge.attention(&call.params, &report);
  if (status != ASSAY_OK) return check_refusal(status, judge.last_error());
  if (std::string wrong = check_report(report); !wrong.empty()) return wrong;
  assay_judge_report again{};
  again.struct_size = sizeof again;
  call.params.threads = 2;
  if (judge.attention(&call.params, &again) != ASSAY_OK) return "refused the second time";
  if (std::memcmp(&report, &again, sizeof report) != 0) return "two threads say something else";
  return "";
}

} // namespace assay::fuzz
