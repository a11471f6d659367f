// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/served_call.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/abi/kernel_table.h"
#include "oracle/bounds/block_fma.h"
#include "oracle/exact/dtype.h"
#include "oracle/rows/build.h"

namespace assay::served {
namespace {

constexpr double kWeight = 0.04; // weight of each key that the head looks at
constexpr uint64_t kQueries = 0, kKeys = uint64_t{1} << 40, kValues = uint64_t{1} << 41,
                   kStale = uint64_t{1} << 42;

void require(assay_status status, const assay_kernel &kernel, const char *what) {
  if (status != ASSAY_OK)
    throw std::runtime_error(std::string(kernel.name) + ": " + what + ": " + kernel.last_error());
}

} // namespace

ServedCall::ServedCall(Machine &machine, const Sizes &sizes)
    : machine_(machine), sizes_(sizes), kernel_(&own_kernel(sizes.kernel, machine.target())),
      right_(laid_out(sizes, machine.target())) {
  allocate();
  look_at_keys();
  rows_ = rows_of(right_);
  model_ = model_of(right_);
  run(right_, right_o_, right_lse_);
  restore();
}

void ServedCall::allocate() {
  spare_pages_ = sizes_.split / kPage + 4;
  const size_t pool = static_cast<size_t>(right_.pages + spare_pages_) * page_bytes();
  const size_t outputs = static_cast<size_t>(rows()) * static_cast<size_t>(sizes_.heads);
  void *k = machine_.allocate(pool), *v = machine_.allocate(pool);
  void *q = machine_.allocate(outputs * kDim * 2);
  stale_q_ = machine_.allocate(outputs * kDim * 2);
  machine_.fill_elements(k, pool / element_bytes(), element_bytes() == 1, kKeys);
  machine_.fill_elements(v, pool / element_bytes(), element_bytes() == 1, kValues);
  machine_.fill_elements(q, outputs * kDim, false, kQueries);
  machine_.fill_elements(stale_q_, outputs * kDim, false, kStale);
  machine_.finish();
  right_.p.kv.k = k;
  right_.p.kv.v = v;
  right_.p.q = q;
  for (void **o : {&o_, &right_o_, &wrong_o_})
    *o = machine_.allocate(outputs * kDim * 2);
  for (float **lse : {&lse_, &right_lse_, &wrong_lse_})
    *lse = static_cast<float *>(machine_.allocate(outputs * sizeof(float)));
  const size_t floats = static_cast<size_t>(sizes_.heads) * sizeof(float);
  const size_t bytes[] = {
      right_.table.size() * 4, right_.lengths.size() * 4, floats, floats, floats, floats};
  for (size_t i = 0; i < 6; ++i)
    arrays_[i] = machine_.allocate(bytes[i]);
  right_.p.out = o_;
  right_.p.lse = lse_;
}

void *ServedCall::key(Call &call, int position, int kv_head) const {
  const int64_t at = int64_t{call.page_of(sizes_.request, position)} * call.p.kv.k_stride_page +
                     position % kPage * token_elements() + kv_head * kDim;
  return const_cast<std::byte *>(static_cast<const std::byte *>(call.p.kv.k)) +
         at * static_cast<int64_t>(element_bytes());
}

void *ServedCall::value(Call &call, int position, int kv_head) const {
  const auto offset =
      static_cast<const std::byte *>(call.p.kv.v) - static_cast<const std::byte *>(call.p.kv.k);
  return static_cast<std::byte *>(key(call, position, kv_head)) + offset;
}

/// The query, so much longer or shorter that the key gets its share.
void ServedCall::look_at(int position) {
  std::vector<uint16_t> query(kDim);
  const auto at = static_cast<size_t>((row() * sizes_.heads + head()) * kDim);
  copy(query.data(), static_cast<const uint16_t *>(right_.p.q) + at, kDim * 2);
  std::vector<float> q(kDim);
  oracle::load_elements(ASSAY_BF16, query.data(), kDim, q.data());
  double square = 0.0;
  for (const float x : q)
    square += double{x} * x;
  double logit = std::log(kWeight * (last_key() + 1 - first_key())) + 0.5;
  if (sizes_.alibi)
    logit += double{right_.slopes[static_cast<size_t>(head())]} * (last_key() - position);
  const double scale =
      right_.k_scale.empty() ? 1.0 : right_.k_scale[static_cast<size_t>(kv_head())];
  const double length = logit / (right_.p.sm_scale * scale * square);
  std::vector<std::byte> bits(token_bytes());
  for (size_t i = 0; i < kDim; ++i)
    oracle::store_element(
        sizes_.kv_dtype, bits.data(), static_cast<int64_t>(i),
        static_cast<float>(oracle::round_to(oracle::format_of(sizes_.kv_dtype), length * q[i])));
  copy(key(right_, position, kv_head()), bits.data(), bits.size());
}

void ServedCall::look_at_keys() {
  for (const int position :
       {first_key(), middle_key(), other_key(), last_key(), last_key() + 1, first_key() - 1})
    if (position >= 0) look_at(position);
}

assay_paged_params ServedCall::host_params(const Call &call) const {
  assay_paged_params p = call.p;
  p.kv.page_table = call.table.data();
  p.kv.seq_lens = call.lengths.data();
  const auto array = [](const std::vector<float> &a) { return a.empty() ? nullptr : a.data(); };
  p.k_scale = array(call.k_scale);
  p.v_scale = array(call.v_scale);
  p.sinks = array(call.sinks);
  p.alibi_slopes = array(call.slopes);
  return p;
}

oracle::AttentionRows ServedCall::rows_of(const Call &call) const {
  return std::get<oracle::AttentionRows>(oracle::rows_of(host_params(call)));
}

oracle::KernelModel ServedCall::model_of(const Call &call) const {
  const assay_paged_params p = host_params(call);
  return {.arithmetic = kernel_->arithmetic,
          .order = oracle::ask_key_order(*kernel_, &p),
          .replay_scores = oracle::has_measured_blocks(kernel_->arithmetic)};
}

template <class T>
const T *ServedCall::upload(const std::vector<T> &from, void *to) {
  if (from.empty()) return nullptr;
  copy(to, from.data(), from.size() * sizeof(T));
  return static_cast<const T *>(to);
}

void ServedCall::run(const Call &call, void *o, float *lse) {
  assay_paged_params p = call.p;
  p.kv.page_table = upload(call.table, arrays_[0]);
  p.kv.seq_lens = upload(call.lengths, arrays_[1]);
  p.k_scale = upload(call.k_scale, arrays_[2]);
  p.v_scale = upload(call.v_scale, arrays_[3]);
  p.sinks = upload(call.sinks, arrays_[4]);
  p.alibi_slopes = upload(call.slopes, arrays_[5]);
  p.out = o;
  p.lse = lse;
  uint64_t bytes = 0;
  if (kernel_->workspace_size != nullptr)
    require(kernel_->workspace_size(&p, &bytes), *kernel_, "workspace");
  if (bytes > workspace_bytes_) {
    workspace_ = machine_.allocate(bytes);
    workspace_bytes_ = bytes;
  }
  p.workspace = workspace_;
  p.workspace_bytes = workspace_bytes_;
  require(kernel_->run(&p), *kernel_, "run");
  machine_.finish();
}

void ServedCall::take_spare_page(Call &wrong, int position) {
  const int first = position / kPage * kPage;
  void *const k = key(wrong, first, 0), *const v = value(wrong, first, 0);
  wrong.page_of(sizes_.request, position) = right_.pages + next_spare_++ % spare_pages_;
  copy(key(wrong, first, 0), k, page_bytes());
  copy(value(wrong, first, 0), v, page_bytes());
}

void ServedCall::drop_pages(Call &wrong, int begin, int end) const {
  const auto first = wrong.table.begin() + int64_t{sizes_.request} * wrong.p.kv.max_pages;
  std::copy(first + end / kPage, first + wrong.p.kv.max_pages, first + begin / kPage);
  wrong.lengths[static_cast<size_t>(sizes_.request)] -= end - begin;
}

const void *ServedCall::stale_queries() { return stale_q_; }

void *ServedCall::output(void *base, int row, int head) const {
  return static_cast<uint16_t *>(base) + static_cast<size_t>(row * sizes_.heads + head) * kDim;
}

void ServedCall::plant(Call wrong, int from_row, int from_head) {
  run(wrong, wrong_o_, wrong_lse_);
  copy(output(o_, row(), head()), output(wrong_o_, from_row, from_head), kDim * 2);
  copy(lse_at(lse_, row(), head()), lse_at(wrong_lse_, from_row, from_head), sizeof(float));
}

std::vector<double> ServedCall::exact(const Call &call) {
  std::vector<double> out;
  for (const oracle::ElementBounds &e : bounds(rows_of(call), {.arithmetic = kernel_->arithmetic}))
    out.push_back(e.mid);
  return out;
}

std::vector<oracle::ElementBounds> ServedCall::bounds(const oracle::AttentionRows &rows,
                                                      const oracle::KernelModel &model) {
  const oracle::TierReport report =
      machine_.judge(rows, {o_, lse_}, model, {.first_tier_alone = true, .elements = true});
  std::vector<oracle::ElementBounds> out;
  for (size_t i = 0; i <= kDim; ++i)
    out.push_back(
        report.elements[static_cast<size_t>(row() * sizes_.heads + head()) * (kDim + 1) + i][0]);
  return out;
}

std::vector<uint16_t> ServedCall::o(int row, int head) {
  std::vector<uint16_t> out(kDim);
  copy(out.data(), output(o_, row, head), kDim * 2);
  return out;
}

float ServedCall::lse(int row, int head) {
  float out = 0.0f;
  copy(&out, lse_at(lse_, row, head), sizeof out);
  return out;
}

void ServedCall::write(int row, int head, const std::vector<uint16_t> &o, float lse) {
  copy(output(o_, row, head), o.data(), kDim * 2);
  copy(lse_at(lse_, row, head), &lse, sizeof lse);
}

void ServedCall::write_exact(const std::vector<double> &o_and_lse) {
  std::vector<uint16_t> bits(kDim);
  for (size_t i = 0; i < kDim; ++i)
    oracle::store_element(
        ASSAY_BF16, bits.data(), static_cast<int64_t>(i),
        static_cast<float>(oracle::round_to(oracle::format_of(ASSAY_BF16), o_and_lse[i])));
  write(row(), head(), bits, static_cast<float>(o_and_lse[kDim]));
}

void ServedCall::restore() {
  const size_t outputs = static_cast<size_t>(rows()) * static_cast<size_t>(sizes_.heads);
  copy(o_, right_o_, outputs * kDim * 2);
  copy(lse_, right_lse_, outputs * sizeof(float));
  next_spare_ = 0;
}

std::vector<oracle::RowHead> ServedCall::open_of_first() {
  return machine_.judge(rows_, {o_, lse_}, model_, {.first_tier_alone = true}).open;
}
std::vector<oracle::RowHead> ServedCall::open_of_every() {
  return machine_.judge(rows_, {o_, lse_}, model_).open;
}
oracle::Report ServedCall::on_host(const oracle::RowHead &at) {
  return oracle::judge_one(rows_, {o_, lse_}, model_, at.row, at.head, machine_.memory());
}

} // namespace assay::served
