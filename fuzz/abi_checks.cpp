// SPDX-License-Identifier: Apache-2.0
#include "fuzz/abi_checks.h"

#include <cstring>
#include <limits>

#include "fuzz/byte_reader.h"

namespace assay::fuzz {
namespace {

/// An address that nothing may be read from: answers depend on shapes and on addresses alone.
template <class T>
T *somewhere(int n) {
  return reinterpret_cast<T *>(uintptr_t{0x10000} * static_cast<uintptr_t>(n));
}

int64_t read_value(ByteReader &in) {
  using Int = std::numeric_limits<int32_t>;
  using Long = std::numeric_limits<int64_t>;
  constexpr int64_t kOne = 1;
  constexpr std::array<int64_t, 24> kNasty = {0,          1,          -1,          2,
                                              7,          8,          16,          64,
                                              128,        256,        512,         4096,
                                              kOne << 20, kOne << 24, kOne << 30,  Int::max(),
                                              Int::min(), kOne << 31, kOne << 32,  (kOne << 32) + 1,
                                              kOne << 33, kOne << 62, Long::max(), Long::min()};
  const uint8_t tag = in.byte();
  if (tag < kNasty.size()) return kNasty[tag];
  if (tag < 192) return tag - 96;
  const uint64_t low = in.word();
  return tag < 224 ? static_cast<int32_t>(low)
                   : static_cast<int64_t>(low | uint64_t{in.word()} << 32);
}

/// Overwrites words of the parameters, one or two at a time, but for those in [keep, keep + 8).
template <class Params>
void overwrite(ByteReader &in, Params &params, size_t keep) {
  constexpr int kWords = sizeof(Params) / 4;
  auto *bytes = reinterpret_cast<unsigned char *>(&params);
  for (int i = 0; i < 16 && !in.done(); ++i) {
    const uint8_t place = in.byte();
    const auto at = static_cast<size_t>(place % kWords) * 4;
    const int64_t value = read_value(in);
    const size_t size = at % 8 == 0 && value != static_cast<int32_t>(value) ? 8 : 4;
    if (at + size > keep && at < keep + 8) continue;
    std::memcpy(bytes + at, &value, size);
  }
}

assay_paged_kv right_kv(int32_t rows) {
  return {.k = somewhere<void>(1),
          .v = somewhere<void>(2),
          .k_stride_page = 16 * 128,
          .k_stride_token = 128,
          .k_stride_head = 64,
          .v_stride_page = 16 * 128,
          .v_stride_token = 128,
          .v_stride_head = 64,
          .page_table = somewhere<int32_t>(3),
          .seq_lens = somewhere<int32_t>(4),
          .page_table_stride = 8,
          .rows = rows,
          .max_pages = 8,
          .page_size = 16,
          .reserved = {}};
}

template <class Params>
void set_shape(Params &p) {
  p.struct_size = sizeof p;
  p.batch = 3;
  p.num_qo_heads = 8;
  p.num_kv_heads = 2;
  p.head_dim = 64;
}

/// What paged attention and cascades have alike.
template <class Params>
void set_common(Params &p) {
  set_shape(p);
  p.sm_scale = 0.125f;
  p.q = somewhere<void>(5);
  p.out = somewhere<void>(6);
  p.lse = somewhere<float>(7);
  p.q_stride_batch = p.out_stride_batch = 512;
  p.q_stride_head = p.out_stride_head = 64;
  p.lse_stride_head = 1;
  p.workspace = somewhere<void>(8);
  p.workspace_bytes = uint64_t{1} << 40;
  p.lse_stride_batch = 8;
}

assay_paged_params right_paged() {
  assay_paged_params p = assay_paged_params_init();
  set_common(p);
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.q_len = 1;
  p.q_stride_token = p.out_stride_token = 512;
  p.lse_stride_token = 8;
  p.kv = right_kv(p.batch);
  return p;
}

/// What a planner needs, and no more.
assay_paged_params right_plan() {
  assay_paged_params p = assay_paged_params_init();
  set_shape(p);
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.q_len = 1;
  p.sm_scale = 0.125f;
  p.kv.seq_lens = somewhere<int32_t>(4);
  p.kv.rows = p.batch;
  p.kv.max_pages = 8;
  p.kv.page_size = 16;
  p.plan = somewhere<void>(8);
  return p; // plan_bytes 0: never filled
}

assay_cascade_params right_cascade(const assay_cascade_level *levels) {
  assay_cascade_params p{};
  set_common(p);
  p.dtype = ASSAY_BF16;
  p.num_levels = 2;
  p.levels = levels;
  return p;
}

template <class Params>
void set_merge(Params &p) {
  p.struct_size = sizeof p;
  p.dtype = ASSAY_FP32;
  p.num_rows = 3;
  p.num_heads = 2;
  p.head_dim = 64;
  p.out = somewhere<void>(5);
  p.lse = somewhere<float>(6);
  p.out_stride_row = 128;
  p.out_stride_head = 64;
  p.lse_stride_row = 2;
  p.lse_stride_head = 1;
}

assay_merge_state_params right_merge_state() {
  assay_merge_state_params p{};
  set_merge(p);
  p.o_a = somewhere<void>(1);
  p.lse_a = somewhere<float>(2);
  p.o_b = somewhere<void>(3);
  p.lse_b = somewhere<float>(4);
  p.o_a_stride_row = p.o_b_stride_row = 128;
  p.o_a_stride_head = p.o_b_stride_head = 64;
  p.lse_a_stride_row = p.lse_b_stride_row = 2;
  p.lse_a_stride_head = p.lse_b_stride_head = 1;
  return p;
}

assay_merge_states_params right_merge_states() {
  assay_merge_states_params p{};
  set_merge(p);
  p.num_states = 4;
  p.o_in = somewhere<void>(1);
  p.lse_in = somewhere<float>(2);
  p.o_in_stride_state = 128;
  p.o_in_stride_head = 64;
  p.lse_in_stride_state = 2;
  p.lse_in_stride_head = 1;
  return p;
}

/// A status of assay.h, with a message exactly when it is a failure.
std::string answer_violation(const char *what, assay_status status, const char *message) {
  const std::string name = std::string(what) + " gave " + std::to_string(status);
  if (status < ASSAY_OK || status > ASSAY_CAPACITY_EXCEEDED) return name;
  if (message == nullptr) return name + " and a null message";
  if ((status == ASSAY_OK) != (message[0] == '\0')) return name + " with '" + message + "'";
  if (assay_status_name(status) == nullptr) return name + ", without a name";
  return "";
}

/// Asks twice, and makes the call when it must fail the same way.
template <class Params>
class Calls {
  using Entry = AbiEntries::Call<Params>;
  using Sizer = AbiEntries::Size<Params>;

public:
  Calls(const AbiEntries &entries, const Params &params)
      : entries_(entries), params_(params), before_(params) {}

  assay_status ask(const char *what, Entry supports, Entry call) {
    const assay_status status = supports(&params_);
    check_answer(what, status);
    if (supports(&params_) != status) require(std::string(what) + " changes its answer");
    if (status != ASSAY_OK && call(&params_) != status)
      require(std::string(what) + " differs from the call");
    return status;
  }

  uint64_t size(const char *what, Sizer sizer, assay_status &status) {
    constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;
    uint64_t bytes = kUntouched;
    status = sizer(&params_, &bytes);
    check_answer(what, status);
    if (status != ASSAY_OK && bytes != kUntouched)
      require(std::string(what) + " wrote a size and failed");
    if (status == ASSAY_OK && bytes > uint64_t{1} << 62)
      require(std::string(what) + " asks for " + std::to_string(bytes) + " bytes");
    return bytes;
  }

  std::string done() {
    if (std::memcmp(&params_, &before_, sizeof(Params)) != 0) require("a call changed its params");
    return error_;
  }
  void check_answer(const char *what, assay_status status) {
    require(answer_violation(what, status, entries_.last_error()));
  }
  void require(const std::string &violation) {
    if (error_.empty()) error_ = violation;
  }

private:
  const AbiEntries &entries_;
  const Params params_, before_;
  std::string error_;
};

/// A planner may not fill a buffer that is too small.
void check_no_room(Calls<assay_paged_params> &calls, const assay_paged_params &p,
                   AbiEntries::Call<assay_paged_params> plan,
                   AbiEntries::Size<assay_paged_params> plan_size) {
  assay_status sized = ASSAY_OK;
  const uint64_t bytes = calls.size("plan_size", plan_size, sized);
  if (p.plan_bytes >= bytes && sized == ASSAY_OK) return;
  const assay_status status = plan(&p);
  calls.check_answer("plan", status);
  if (status == ASSAY_OK && p.batch > 0) calls.require("a plan went into no room");
}

std::string check_paged(const AbiEntries &entries, const assay_paged_params &p, ByteReader &in) {
  Calls<assay_paged_params> calls(entries, p);
  calls.ask("paged_attention_v1_supports", entries.v1_supports, entries.v1);
  const assay_status v2 = calls.ask("paged_attention_v2_supports", entries.v2_supports, entries.v2);
  assay_status sized = ASSAY_OK;
  const uint64_t bytes = calls.size("v2_workspace_size", entries.v2_size, sized);
  // An empty batch needs none.
  if (v2 == ASSAY_OK && p.batch > 0 && (sized != ASSAY_OK || bytes > p.workspace_bytes))
    calls.require("a workspace that is too small is supported");
  const assay_status tree =
      calls.ask("tree_attention_supports", entries.tree_supports, entries.tree);
  const uint64_t tree_bytes = calls.size("tree_workspace_size", entries.tree_size, sized);
  if (tree == ASSAY_OK && p.batch > 0 && (sized != ASSAY_OK || tree_bytes > p.workspace_bytes))
    calls.require("a workspace that is too small is supported");
  check_no_room(calls, p, entries.v2_plan, entries.v2_plan_size);
  check_no_room(calls, p, entries.tree_plan, entries.tree_plan_size);
  check_no_room(calls, p, entries.tree_lengths, entries.tree_plan_size);
  assay_paged_choice choice{-1, -1, {}};
  const int64_t total = read_value(in), longest = read_value(in);
  const assay_status chosen =
      assay_paged_attention_choose(&p, total, static_cast<int32_t>(longest), &choice);
  calls.check_answer("paged_attention_choose", chosen);
  const bool sane = chosen == ASSAY_OK ? (choice.version == 1 || choice.version == 2) &&
                                             (choice.even_lengths == 0 || choice.even_lengths == 1)
                                       : choice.version == -1 && choice.even_lengths == -1;
  if (!sane) calls.require("paged_attention_choose leaves no choice");
  return calls.done();
}

std::string check_cascade(const AbiEntries &entries, const assay_cascade_params &p) {
  Calls<assay_cascade_params> calls(entries, p);
  const assay_status status =
      calls.ask("cascade_attention_supports", entries.cascade_supports, entries.cascade);
  assay_status sized = ASSAY_OK;
  const uint64_t bytes = calls.size("cascade_workspace_size", entries.cascade_size, sized);
  if (status == ASSAY_OK && p.batch > 0 && (sized != ASSAY_OK || bytes > p.workspace_bytes))
    calls.require("a workspace that is too small is supported");
  return calls.done();
}

template <class Params>
std::string check_merge_call(const AbiEntries &entries, ByteReader &in, Params params,
                             const char *what, AbiEntries::Call<Params> supports,
                             AbiEntries::Call<Params> call) {
  overwrite(in, params, sizeof params);
  Calls<Params> calls(entries, params);
  calls.ask(what, supports, call);
  return calls.done();
}

} // namespace

std::string check_abi_with(const AbiEntries &entries, Input input) {
  ByteReader in(input);
  switch (in.byte() % 5) {
  case 0: {
    assay_paged_params p = right_paged();
    overwrite(in, p, sizeof p);
    return check_paged(entries, p, in);
  }
  case 1: {
    assay_paged_params p = right_plan();
    overwrite(in, p, sizeof p);
    Calls<assay_paged_params> calls(entries, p);
    check_no_room(calls, p, entries.v2_plan, entries.v2_plan_size);
    return calls.done();
  }
  case 2: {
    assay_cascade_level levels[ASSAY_MAX_CASCADE_LEVELS];
    for (assay_cascade_level &level : levels)
      level = {right_kv(2), somewhere<int32_t>(9), {}};
    overwrite(in, levels[0], sizeof levels[0]);
    assay_cascade_params p = right_cascade(levels);
    overwrite(in, p, offsetof(assay_cascade_params, levels));
    return check_cascade(entries, p);
  }
  case 3:
    return check_merge_call(entries, in, right_merge_state(), "merge_state_supports",
                            entries.merge_state_supports, entries.merge_state);
  default:
    return check_merge_call(entries, in, right_merge_states(), "merge_states_supports",
                            entries.merge_states_supports, entries.merge_states);
  }
}

} // namespace assay::fuzz
