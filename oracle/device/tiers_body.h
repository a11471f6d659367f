// SPDX-License-Identifier: Apache-2.0
// Internal: every tier of one (row, head), by a team of threads. One text for the host, whose team
// is one thread, and for a GPU, whose team is a block.
#pragma once

#include "oracle/bounds/block_fma_step.h"
#include "oracle/device/call_rows.h"
#include "oracle/device/row_verdict.h"
#include "oracle/device/tiers_keys.h"

namespace assay::oracle::device {

/**
 * A Team has rank() and size(), sync(), most(x) and sum(x) over its threads, any(flag), and
 * count(at), which adds one to a number that all teams share. What all threads of a team must
 * agree on goes through most, sum and any.
 */
template <class Team>
class RowBody {
public:
  ORACLE_HOST_DEVICE RowBody(const TierCall &call, Team &team, TeamMemory &memory, int number)
      : call_(call), base_(call.base), team_(team), m_(memory),
        keys_(call.scratch, call.scratch_base + number * call.scratch.bytes()),
        verdict_(call, team, keys_.elements) {}

  ORACLE_HOST_DEVICE void run(int64_t pair) {
    row_ = static_cast<int>(pair / base_.num_heads);
    head_ = static_cast<int>(pair % base_.num_heads);
    visible_ = base_.end[row_] - base_.begin[row_];
    sink_ = has_sink(base_, head_);
    total_ = visible_ + (sink_ ? 1 : 0);
    open_ = v_subnormal_ = false;
    verdict_.start(row_, head_);
    if (visible_ == 0 || !start() || !look_at_keys() || !weigh())
      open_ = true;
    else
      judge_tiers();
    verdict_.finish(open_);
  }

private:
  ORACLE_HOST_DEVICE bool first() const { return team_.rank() == 0; }

  // ---- The query and its keys.

  /// False: nothing is claimed.
  ORACLE_HOST_DEVICE bool start() {
    const int64_t at = base_.q_at[row_] + head_ * base_.q_stride_head;
    double largest = 0.0;
    bool finite = true, plain = true;
    for (int i = team_.rank(); i < base_.head_dim; i += team_.size()) {
      const float x = load_element(base_.q_dtype, call_.fp8, base_.q, at + i);
      const double size = fabs(static_cast<double>(x));
      m_.q[i] = x;
      finite = finite && size < HUGE_VAL;
      if (finite) m_.operands[i] = block_fma::operand(x, base_.facts.operand.min_exponent);
      plain = plain && (size == 0.0 || (size >= 0x1p-14 && size < 0x1p15));
      largest = fmax(largest, size);
    }
    largest = team_.most(largest);
    if (team_.any(!finite)) return false;
    plain_query_ = !team_.any(!plain);
    query_max_ = largest;
    return start_row();
  }

  ORACLE_HOST_DEVICE bool start_row() {
    bool fits = true;
    team_.sync();
    if (first()) {
      fits = start_numbers(base_, row_, head_, visible_, query_max_, m_.row);
      m_.row.facts.v_subnormal = v_subnormal_;
    }
    fits = !team_.any(!fits);
    bool align = false;
    for (int i = team_.rank(); i < base_.head_dim; i += team_.size())
      align = align || (m_.q[i] != 0.0 && fabs(m_.q[i]) < m_.row.q_least);
    align_ = team_.any(align);
    return fits;
  }

  /// Scores of all keys, and their logits. False: nothing is claimed.
  ORACLE_HOST_DEVICE bool look_at_keys() {
    const int kv_head = base_.heads[head_].kv_head, list = call_.list[row_];
    const double least = ldexp(1.0, base_.facts.operand.min_exponent);
    bool finite = true, fits = true;
    for (int j = team_.rank(); j < visible_; j += team_.size()) {
      place_key(base_, list, kv_head, base_.begin[row_] + j, j, keys_);
      double value = 0.0, size = 0.0, key_size = 0.0;
      bool subnormal = false;
      each_element(base_, call_.fp8, keys_.k_row[j], [&](int i, double k) {
        const double product = m_.q[i] * k, magnitude = fabs(k);
        value += product;
        size += fabs(product);
        key_size += magnitude;
        finite = finite && magnitude < HUGE_VAL;
        subnormal = subnormal || (k != 0.0 && magnitude < least);
      });
      KeyFacts facts = facts_of_key(j);
      facts.key_magnitude = key_size;
      if (align_ || subnormal) facts.excess = excess(j, least);
      Logit logit;
      fits = key_logit(m_.row, {value, size}, facts, logit) && fits;
      keys_.put(j, logit);
      keys_.at(kSize)[j] = size;
      if (finite && replays()) keys_.at(kExact)[j] = kernel_score(j);
    }
    fits = add_sink() && fits && finite;
    return !team_.any(!fits);
  }

  /// The kernel's own scores in the place of q.k, without error. False: T2 does not apply.
  ORACLE_HOST_DEVICE bool replay_logits() {
    bool fits = true;
    for (int j = team_.rank(); j < visible_; j += team_.size()) {
      KeyFacts facts = facts_of_key(j);
      facts.exact = true;
      Logit logit;
      fits = key_logit(m_.row, {keys_.at(kExact)[j], keys_.at(kSize)[j]}, facts, logit) && fits;
      keys_.put(j, logit);
    }
    fits = add_sink() && fits;
    return !team_.any(!fits);
  }

  ORACLE_HOST_DEVICE bool add_sink() {
    if (!sink_ || !first()) return true;
    keys_.v_row[visible_] = nullptr;
    const Logit logit = sink_logit(m_.row.facts.features);
    keys_.put(visible_, logit);
    return fabs(logit.x) + logit.error < kFp32Limit;
  }

  ORACLE_HOST_DEVICE KeyFacts facts_of_key(int j) const {
    KeyFacts facts;
    const int behind = base_.behind == nullptr ? 0 : base_.behind[row_];
    const int64_t begin = base_.begin[row_];
    facts.distance = static_cast<double>(base_.shard.position(begin + j) -
                                         base_.shard.position(begin + visible_ - 1) + behind);
    facts.head_dim = base_.head_dim;
    return facts;
  }

  /// What subnormal operands add to the magnitude that addends are aligned by.
  ORACLE_HOST_DEVICE double excess(int j, double least_k) const {
    const double least_q = m_.row.q_least;
    double sum = 0.0;
    each_element(base_, call_.fp8, keys_.k_row[j], [&](int i, double k) {
      const double a = fabs(m_.q[i]), b = fabs(k);
      if (a == 0.0 || b == 0.0 || (a >= least_q && b >= least_k)) return;
      sum += fmax(a, least_q) * fmax(b, least_k);
    });
    return sum;
  }

  /// Whether the kernel's own scores can be had (block_fma.h): behind a map they are not what is
  /// exponentiated, and a scaled query's bits are not known.
  ORACLE_HOST_DEVICE bool replays() const {
    if (call_.replay_scores == 0 || call_.tiles == nullptr) return false;
    return !base_.facts.features.fp8 || (base_.q_dtype == ASSAY_FP16 && plain_query_);
  }

  ORACLE_HOST_DEVICE double kernel_score(int j) const {
    block_fma::Operand k[block_fma::kMaxBlock];
    block_fma::Accumulator sum;
    int count = 0;
    each_element(base_, call_.fp8, keys_.k_row[j], [&](int i, float x) {
      k[count++] = block_fma::operand(x, base_.facts.operand.min_exponent);
      if (count < call_.mma_block && i + 1 < base_.head_dim) return;
      sum = block_fma::step(sum, m_.operands + (i + 1 - count), k, count, call_.mma_fraction_bits);
      count = 0;
    });
    return sum.value();
  }

  // ---- Weights, and what the keys come to.

  /// False: nothing is claimed.
  ORACLE_HOST_DEVICE bool weigh() {
    double x_max = -HUGE_VAL, x_abs = 0.0, x_error = 0.0;
    team_.sync(); // the sink's logit
    for (int j = team_.rank(); j < total_; j += team_.size()) {
      const Logit logit = keys_.logit(j);
      x_max = fmax(x_max, logit.x);
      x_abs = fmax(x_abs, fabs(logit.x) + logit.radius + logit.error);
      x_error = fmax(x_error, logit.error + logit.radius);
    }
    x_max = team_.most(x_max);
    x_abs = team_.most(x_abs);
    x_error = team_.most(x_error);
    double z = 0.0, weight_error = 0.0, error_mass = 0.0;
    for (int j = team_.rank(); j < total_; j += team_.size()) {
      KeyWeight key;
      weigh_key(x_max, keys_.logit(j), key);
      keys_.at(kWeight)[j] = key.weight;
      z += key.weight;
      if (key.weight > 0.0) weight_error = fmax(weight_error, key.error);
      error_mass += key.weight * key.error;
    }
    z = team_.sum(z);
    weight_error = team_.most(weight_error);
    error_mass = team_.sum(error_mass);
    bool none = false;
    if (first()) {
      m_.row.x_max = x_max;
      m_.row.x_abs = x_abs;
      m_.row.x_error_max = x_error;
      m_.row.z = z;
      m_.row.weight_error = weight_error;
      m_.row.mass_error = error_mass / z * kSlack;
      m_.row.coarse = !(weight_error < 0x1p-20);
      none = bound_sums(m_.row) != NoClaim::kNone;
    }
    if (team_.any(none)) return false;
    bound_keys();
    return true;
  }

  ORACLE_HOST_DEVICE void bound_keys() {
    const OmegaRow common = omega_row(m_.row);
    double mean = 0.0, low = 0.0, log_omega = 0.0;
    bool vague = false;
    for (int j = team_.rank(); j < total_; j += team_.size()) {
      KeyWeight key;
      key.weight = keys_.at(kWeight)[j];
      bound_key(m_.row, common, keys_.logit(j), key);
      keys_.at(kOmega)[j] = key.omega;
      keys_.at(kLow)[j] = key.low;
      low += key.low;
      log_omega = fmax(log_omega, key.log_omega);
      vague = vague || key.vague;
      mean += key.weight * key.omega;
    }
    mean = team_.sum(mean);
    low = team_.sum(low);
    log_omega = team_.most(log_omega);
    vague = team_.any(vague);
    if (first()) {
      RowNumbers &row = m_.row;
      row.vague = vague;
      row.log_omega_max = log_omega;
      row.omega_mean = vague ? HUGE_VAL : mean / row.z * kSlack;
      row.mass_low = low / row.z / kSlack;
      m_.tail = tail_errors(row.model, row.shape);
    }
    team_.sync();
  }

  // ---- Components of V.

  /// Sums over the keys, for every component: `add(j, dim, v, sums)`, joined as Columns says.
  template <int kCount, class Add>
  ORACLE_HOST_DEVICE void sum_columns(Add add) {
    const int dims = base_.dims, slices = call_.scratch.slices;
    double *parts = keys_.sums + kCount * dims;
    for (int at = team_.rank(); at < slices * dims; at += team_.size()) {
      const int slice = at / dims, dim = at % dims;
      const auto begin = static_cast<int>(int64_t{total_} * slice / slices);
      const auto end = static_cast<int>(int64_t{total_} * (slice + 1) / slices);
      double sums[kCount];
      for (int k = 0; k < kCount; ++k)
        sums[k] = Columns::start(k);
      for (int j = begin; j < end; ++j)
        add(j, dim, value_of(j, dim), sums);
      for (int k = 0; k < kCount; ++k)
        parts[(slice * kCount + k) * dims + dim] = sums[k];
    }
    team_.sync();
    for (int at = team_.rank(); at < kCount * dims; at += team_.size()) {
      const int k = at / dims;
      double all = Columns::start(k);
      for (int slice = 0; slice < slices; ++slice)
        all = Columns::join(k, all, parts[slice * kCount * dims + at]);
      keys_.sums[at] = all;
    }
    team_.sync();
  }
  /// Of component `dim`, as sum_columns left it.
  ORACLE_HOST_DEVICE double column(int k, int dim) const {
    return keys_.sums[k * base_.dims + dim];
  }

  ORACLE_HOST_DEVICE double value_of(int j, int dim) const {
    const unsigned char *row = keys_.v_row[j];
    return row == nullptr ? 0.0 : load_element(base_.kv_dtype, call_.fp8, row, dim);
  }

  /// The components of V themselves, and T0's sums but the last. False: nothing is claimed.
  ORACLE_HOST_DEVICE bool sum_values() {
    const double least = ldexp(1.0, base_.facts.operand.min_exponent);
    const RowNumbers &row = m_.row;
    const double slack = base_.subnormal != 0 ? subnormal_slack(row) : 0.0;
    bool finite = true, subnormal = false;
    sum_columns<5>([&](int j, int, double v, double *sums) {
      const double size = fabs(v), weight = keys_.at(kWeight)[j], omega = keys_.at(kOmega)[j];
      finite = finite && size < HUGE_VAL;
      subnormal = subnormal || (v != 0.0 && size < least);
      sums[Columns::kMost] = fmax(sums[Columns::kMost], v);
      sums[Columns::kLeast] = fmax(sums[Columns::kLeast], -v);
      sums[2] += weight * v;
      sums[3] += weight * (1.0 + omega) * size;
      if (base_.subnormal == 0) return;
      const KeyWeight key{weight, 0.0, omega, keys_.at(kLow)[j], 0.0, false};
      sums[4] += subnormal_coefficient(row, slack, row.z, row.mass_low, key) * size;
    });
    v_subnormal_ = team_.any(subnormal);
    if (first()) m_.row.facts.v_subnormal = v_subnormal_;
    return !team_.any(!finite);
  }

  ORACLE_HOST_DEVICE void judge_t0() {
    if (!sum_values()) {
      open_ = true;
      return;
    }
    for (int dim = team_.rank(); dim < base_.dims; dim += team_.size()) {
      ColumnSums &sums = m_.columns[dim];
      sums = {column(2, dim),
              column(3, dim),
              column(4, dim),
              0.0,
              -column(Columns::kLeast, dim),
              column(Columns::kMost, dim)};
      m_.largest[dim] = sums.largest();
      verdict_.element(0, dim).reference = enclose_column(m_.row, sums);
    }
    team_.sync();
    sum_columns<3>([&](int j, int dim, double v, double *sums) {
      const double a = keys_.at(kWeight)[j] * keys_.at(kOmega)[j];
      sums[2] += fabs(a * v - a * verdict_.element(0, dim).reference.mid);
    });
    for (int dim = team_.rank(); dim < base_.dims; dim += team_.size()) {
      ColumnSums sums = m_.columns[dim];
      sums.centered = column(2, dim);
      Enclosure exact = verdict_.element(0, dim).reference;
      const BudgetTerms budget = budget_of(m_.row, m_.tail, sums, exact);
      verdict_.judge(0, dim, exact, budget);
    }
  }

  ORACLE_HOST_DEVICE void judge_lse(int tier) {
    if (base_.lse == nullptr) return;
    double worst = 0.0;
    for (int j = team_.rank(); j < total_; j += team_.size()) {
      const Logit logit = keys_.logit(j);
      worst = fmax(worst, logit.radius + (m_.row.x_max - logit.x) * 0x1p-53 + 4 * kExp2Error);
    }
    worst = team_.most(worst);
    if (!first()) return;
    double lse2 = 0.0;
    const Enclosure exact = lse_enclosure(m_.row, worst, &lse2);
    BudgetTerms budget;
    budget.total = lse_budget(m_.row, lse2);
    verdict_.judge(tier, base_.dims, exact, budget);
  }

  // ---- The replay.

  ORACLE_HOST_DEVICE const RowTile &declared(int tile) const {
    return call_.tiles[call_.first_tile[row_] + tile];
  }
  ORACLE_HOST_DEVICE int tiles() const {
    return static_cast<int>(call_.first_tile[row_ + 1] - call_.first_tile[row_]) + (sink_ ? 1 : 0);
  }

  /// The rounded weights. False: nothing can be replayed.
  ORACLE_HOST_DEVICE bool replay_keys() {
    const int count = tiles();
    const KeyArrays arrays{keys_.at(kX), keys_.at(kRadius), keys_.at(kError), keys_.at(kWeight)};
    bool two_parts = false;
    for (int i = team_.rank(); i < count; i += team_.size()) {
      // A sink is a split of its own.
      const bool sink = sink_ && i + 1 == count;
      TileView tile{visible_, total_, 1, false};
      if (!sink) {
        const RowTile &own = declared(i);
        tile = TileView{own.begin, own.end, own.own_blocks, own.two_parts != 0};
      }
      two_parts = two_parts || tile.two_parts;
      look_at_tile(m_.row.x_max, arrays, tile);
      for (int j = tile.begin; j < tile.end; ++j)
        keys_.at(kTile)[j] = i;
      keys_.tiles[i] = tile;
    }
    two_parts = team_.any(two_parts);
    if (first())
      m_.scale = scan_states(keys_.tiles, count, [&](int i) {
        return (sink_ && i + 1 == count) || declared(i).begins_state != 0;
      });
    team_.sync();
    for (int i = team_.rank(); i < count; i += team_.size())
      keys_.errors[i] = tile_errors(m_.row, m_.tail.partials, keys_.tiles[i], m_.scale);
    team_.sync();
    double denominator = 0.0, lost = 0.0;
    bool vague = false;
    for (int j = team_.rank(); j < total_; j += team_.size()) {
      const auto tile = static_cast<int>(keys_.at(kTile)[j]);
      const ReplayedKey key = replay_key(m_.row, call_.p_format, keys_.tiles[tile],
                                         keys_.errors[tile], keys_.logit(j), keys_.at(kWeight)[j]);
      keys_.at(kRho)[j] = key.rho;
      keys_.at(kAmbiguity)[j] = key.ambiguity;
      keys_.at(kRescale)[j] = key.rescale;
      keys_.at(kRescaleMass)[j] = key.rescale_mass;
      keys_.at(kAccumulate)[j] = key.accumulate;
      denominator += key.denominator;
      lost += key.mass_lost;
      vague = vague || key.vague;
    }
    denominator = team_.sum(denominator);
    lost = team_.sum(lost);
    vague = team_.any(vague);
    if (first()) m_.replay = {denominator, 1.0 - lost, two_parts};
    team_.sync();
    return m_.replay.informative(m_.row, vague);
  }

  /// T1, or T2 where the logits are the kernel's own. False: it does not apply.
  ORACLE_HOST_DEVICE bool judge_replay(int tier) {
    if (!replay_keys()) return false;
    sum_columns<6>([&](int j, int, double v, double *sums) {
      const double size = fabs(v);
      sums[2] += keys_.at(kRho)[j] * v;
      sums[3] += keys_.at(kRho)[j] * size;
      sums[4] += keys_.at(kAmbiguity)[j] * size;
      sums[5] += keys_.at(kAccumulate)[j] * size;
    });
    for (int dim = team_.rank(); dim < base_.dims; dim += team_.size())
      m_.replayed[dim] = {column(2, dim), column(3, dim), column(4, dim), column(5, dim), 0.0,
                          m_.largest[dim]};
    team_.sync();
    sum_columns<3>([&](int j, int dim, double v, double *sums) {
      sums[2] +=
          fabs(keys_.at(kRescale)[j] * v - keys_.at(kRescaleMass)[j] * m_.replayed[dim].value);
    });
    for (int dim = team_.rank(); dim < base_.dims; dim += team_.size()) {
      ReplaySums sums = m_.replayed[dim];
      sums.rescaled = column(2, dim);
      Enclosure exact = replayed_column(m_.row, sums);
      BudgetTerms budget = replay_budget(m_.row, m_.tail, m_.replay, sums, exact);
      budget.overflow_possible = false; // T0's say
      verdict_.judge(tier, dim, exact, budget);
    }
    return true;
  }

  // ---- Verdicts.

  ORACLE_HOST_DEVICE void judge_tiers() {
    judge_t0();
    if (open_) return;
    judge_lse(0);
    if (call_.tiles == nullptr) return;
    if (base_.model.p_format != nullptr) judge_replay(1);
    team_.sync(); // the row's numbers become T2's
    if (!replays() || base_.model.p_format == nullptr) return;
    if (start_row() && replay_logits() && weigh() && judge_replay(2)) judge_lse(2);
  }

  const TierCall &call_;
  const Call &base_;
  Team &team_;
  TeamMemory &m_;
  TeamKeys keys_;
  RowVerdict<Team> verdict_;
  int row_ = 0, head_ = 0, visible_ = 0, total_ = 0;
  bool sink_ = false, open_ = false, align_ = false, plain_query_ = false, v_subnormal_ = false;
  double query_max_ = 0.0;
};

} // namespace assay::oracle::device
