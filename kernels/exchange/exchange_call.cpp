// SPDX-License-Identifier: Apache-2.0
#include "kernels/exchange/exchange_call.h"

#include "kernels/abi/plugin.h"
#include "kernels/host/state_checks.h"

namespace assay {
namespace {

static_assert(kMaxRanks == ASSAY_MAX_RANKS);

assay_status check_sizes(const assay_exchange_params &p) {
  ASSAY_RETURN_IF_ERROR(check_state_type(p.dtype, p.head_dim));
  ASSAY_RETURN_IF_ERROR(check_range("heads", p.heads, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("num_ranks", p.num_ranks, 1, kMaxRanks));
  ASSAY_RETURN_IF_ERROR(check_range("max_rows", p.max_rows, 1, kMaxGrid));
  ASSAY_RETURN_IF_ERROR(check_range("num_heads", p.num_heads, 1, 1 << 20));
  if (int64_t{p.max_rows} * p.num_heads > kMaxGrid)
    return fail(ASSAY_CAPACITY_EXCEEDED, "max_rows * num_heads is {}, expected at most {}",
                int64_t{p.max_rows} * p.num_heads, kMaxGrid);
  return ASSAY_OK;
}

/// How the rows of a call are dealt to workers. Every rank comes to the same result: the worker of
/// a number has the same rows on all of them.
struct Deal {
  int32_t packets, lanes_log2, workers, states_per_worker;

  static Deal of(const assay_exchange_params &p, int64_t rows, int64_t most_workers) {
    Deal deal{};
    const int64_t words = 1 + p.head_dim * state_element_bytes(p.dtype) / 4;
    deal.packets = static_cast<int32_t>(div_up(words, kPacketWords));
    while (deal.lanes_log2 < 5 && (1 << deal.lanes_log2) < deal.packets)
      ++deal.lanes_log2;
    const int64_t at_once = 32 >> deal.lanes_log2; // states that a worker has in its lanes
    const bool all = p.heads == ASSAY_EXCHANGE_ALL;
    const int64_t largest_share = all ? p.num_heads : div_up(p.num_heads, p.num_ranks);
    const int64_t states = largest_share * rows;
    const int64_t each = at_once * div_up(div_up(states, at_once), most_workers);
    deal.states_per_worker = static_cast<int32_t>(each);
    deal.workers = static_cast<int32_t>(div_up(states, each));
    return deal;
  }
  static int64_t div_up(int64_t n, int64_t d) { return (n + d - 1) / d; }
};

assay_status check_windows(const assay_exchange_params &p, const ExchangeWindow &window) {
  if (p.windows == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "windows is null");
  const int64_t needed = window.bytes();
  if (p.window_bytes < static_cast<uint64_t>(needed))
    return fail(ASSAY_WORKSPACE_TOO_SMALL, "window_bytes is {}, these calls need {}",
                p.window_bytes, needed);
  for (int r = 0; r < p.num_ranks; ++r) {
    const auto address = reinterpret_cast<uintptr_t>(p.windows[r]);
    if (address == 0) return fail(ASSAY_INVALID_ARGUMENT, "windows[{}] is null", r);
    if (address % 256 != 0)
      return fail(ASSAY_INVALID_ARGUMENT, "windows[{}] is not aligned to 256 bytes", r);
    ASSAY_RETURN_IF_ERROR(check_room("windows", p.windows[r], needed));
    for (int other = 0; other < r; ++other)
      if (p.windows[other] == p.windows[r])
        return fail(ASSAY_INVALID_ARGUMENT, "windows[{}] and windows[{}] are one", other, r);
  }
  return ASSAY_OK;
}

constexpr StateNames kInputNames = {"o_in",
                                    "lse_in",
                                    "o_in_stride_row",
                                    "o_in_stride_head",
                                    "lse_in_stride_row",
                                    "lse_in_stride_head"};

assay_status check_tensors(const assay_exchange_params &p, const ExchangeParams &e) {
  ASSAY_RETURN_IF_ERROR(check_state(kInputNames, e.in, false));
  ASSAY_RETURN_IF_ERROR(check_pointer("status", p.status, 4));
  const int32_t heads = e.heads[p.rank].count;
  if (heads == 0) return ASSAY_OK; // nothing is written
  ASSAY_RETURN_IF_ERROR(check_output_state(e.out, p.num_rows, heads, p.head_dim));
  ASSAY_RETURN_IF_ERROR(check_no_alias("out", p.out, "o_in", p.o_in));
  return check_no_alias("lse", p.lse, "lse_in", p.lse_in);
}

} // namespace

assay_status ExchangeStates::build(const assay_exchange_params *p, ExchangeCall &call) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_exchange_params"));
  ASSAY_RETURN_IF_ERROR(check_target(p->target));
  if (p->dtype == ASSAY_FIELD61) ASSAY_RETURN_IF_ERROR(check_field(p->target, p->stream));
  ASSAY_RETURN_IF_ERROR(check_sizes(*p));
  ASSAY_RETURN_IF_ERROR(check_lse_base(p->lse_base));
  ASSAY_RETURN_IF_ERROR(check_range("rank", p->rank, 0, p->num_ranks - 1));
  ASSAY_RETURN_IF_ERROR(check_range("enable_pdl", p->enable_pdl, 0, 1));
  ASSAY_RETURN_IF_ERROR(check_range("num_rows", p->num_rows, 0, p->max_rows));
  if (p->timeout_ns == 0) return fail(ASSAY_INVALID_ARGUMENT, "timeout_ns is 0, expected > 0");
  call.dtype = p->dtype;
  call.empty = p->num_rows == 0;
  call.enable_pdl = p->enable_pdl != 0;
  if (call.empty) return ASSAY_OK;
  const ExchangeWindow window = window_of(*p);
  ASSAY_RETURN_IF_ERROR(check_windows(*p, window));
  const Deal deal = Deal::of(*p, p->num_rows, window.workers);
  const bool all = p->heads == ASSAY_EXCHANGE_ALL, base2 = p->lse_base == ASSAY_LSE_BASE_2;
  ExchangeParams &e = call.params;
  e.in = {const_cast<void *>(p->o_in), const_cast<float *>(p->lse_in), p->o_in_stride_row,
          p->o_in_stride_head,         p->lse_in_stride_row,           p->lse_in_stride_head};
  e.out = {
      p->out, p->lse, p->out_stride_row, p->out_stride_head, p->lse_stride_row, p->lse_stride_head};
  for (int r = 0; r < kMaxRanks; ++r) {
    const bool exists = r < p->num_ranks;
    e.windows[r] = exists ? static_cast<char *>(p->windows[r]) : nullptr;
    e.heads[r] = exists ? HeadRange::of(r, p->num_ranks, p->num_heads, all) : HeadRange{};
  }
  e.status = p->status;
  e.timeout_ns = p->timeout_ns;
  e.window = window;
  e.rank = p->rank;
  e.num_rows = p->num_rows;
  e.o_words = static_cast<int32_t>(p->head_dim * state_element_bytes(p->dtype) / 4);
  e.workers = deal.workers;
  e.states_per_worker = deal.states_per_worker;
  e.packets = deal.packets;
  e.lanes_log2 = deal.lanes_log2;
  e.scale = base2 ? 1.0f : static_cast<float>(kLog2E);
  e.unit = base2 ? 1.0f : static_cast<float>(kLn2);
  call.blocks = Deal::div_up(deal.workers, kExchangeWarps);
  return check_tensors(*p, e);
}

ExchangeWindow ExchangeStates::window_of(const assay_exchange_params &p) {
  const Deal deal = Deal::of(p, p.max_rows, exchange_workers(p.num_ranks));
  return {p.num_ranks, deal.workers, static_cast<uint32_t>(deal.states_per_worker * deal.packets)};
}

assay_status ExchangeStates::window_size(const assay_exchange_params *p, uint64_t *bytes) {
  ASSAY_RETURN_IF_ERROR(check_struct(p, "assay_exchange_params"));
  ASSAY_RETURN_IF_ERROR(check_sizes(*p));
  *bytes = static_cast<uint64_t>(window_of(*p).bytes());
  return ASSAY_OK;
}

} // namespace assay
