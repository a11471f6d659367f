// SPDX-License-Identifier: Apache-2.0
// wgmma is done as four independent warps: warp w of a group has rows 16 w .. 16 w + 15 of A and C.
#include "kernels/arch/wgmma.cuh"

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/arch/simt/field_block.h"

namespace assay::n_simt::arch::detail {
namespace {

using simt::kLanes;
using simt::WarpCall;

constexpr uint32_t kRowBytes = 128, kGroupRows = 8, kGroupBytes = kRowBytes * kGroupRows;
constexpr uint32_t kBlockColumns = 64; // 16-bit elements in a row
constexpr uint32_t kWarpRows = 16, kDepth = 16;

/// The hardware XORs bits 4 to 6 of an address with bits 7 to 9.
const std::byte *swizzled(const std::byte *p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return p + static_cast<ptrdiff_t>((address ^ (address >> 7 & 7) << 4) - address);
}
uint16_t element(const std::byte *p) {
  uint16_t bits;
  std::memcpy(&bits, swizzled(p), 2);
  return bits;
}
/// Where the element of row r and K index k is, before the swizzle.
const std::byte *k_major(const std::byte *p, uint32_t r, uint32_t k) {
  return p + r * kRowBytes + 2 * k;
}
/// Where the element of K index k and column n is, before the swizzle.
const std::byte *n_major(const std::byte *p, uint32_t block_bytes, uint32_t k, uint32_t n) {
  return p + n / kBlockColumns * block_bytes + k * kRowBytes + n % kBlockColumns * 2;
}

class Operation final : public simt::MatrixOperation {
public:
  Operation(const WarpCall &call, uint32_t warp) : args_(args_of(call, 0)), warp_(warp) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      c_[lane] = static_cast<uint32_t *>(call.out[lane]);
      a_[lane] = args_of(call, lane).registers;
      if (a_[lane] != nullptr) std::memcpy(&operands_[lane], a_[lane], sizeof operands_[lane]);
    }
  }
  simt::Registers result() const override { return {c_[0], 4 * args_.words}; }
  bool overwrites() const override { return !args_.accumulate; }
  bool operands_kept() const override {
    for (uint32_t lane = 0; lane < kLanes && args_.registers != nullptr; ++lane)
      if (std::memcmp(&operands_[lane], a_[lane], sizeof operands_[lane]) != 0) return false;
    return true;
  }
  static const WgmmaArgs &args_of(const WarpCall &call, uint32_t lane) {
    return *static_cast<const WgmmaArgs *>(call.in[lane]);
  }

  void postpone() override {
    // An operation in front may still owe c its result. c is then read when that result is there.
    bool awaited = true;
    for (uint32_t i = 0; i < args_.words; ++i)
      awaited = awaited && c_[0][i] == kPoison;
    if (args_.accumulate && !awaited) {
      kept_.resize(kLanes * args_.words);
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        std::memcpy(&kept_[lane * args_.words], c_[lane], 4 * args_.words);
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      std::memset(c_[lane], 0xFF, 4 * args_.words);
  }

  void complete() override {
    uint16_t a[kWarpRows][kDepth];
    for (uint32_t lane = 0; lane < kLanes && args_.registers != nullptr; ++lane)
      for (uint32_t r = 0; r < 4; ++r) {
        uint16_t *pair = &a[lane / 4 + r % 2 * 8][lane % 4 * 2 + r / 2 * 8];
        pair[0] = static_cast<uint16_t>(a_[lane][r]);
        pair[1] = static_cast<uint16_t>(a_[lane][r] >> 16);
      }
    for (uint32_t r = 0; r < kWarpRows && args_.registers == nullptr; ++r)
      for (uint32_t k = 0; k < kDepth; ++k)
        a[r][k] = element(k_major(args_.a, warp_ * kWarpRows + r, k));
    for (uint32_t n = 0; n < 2 * args_.words; n += 8)
      add_columns(a, n);
  }

private:
  static constexpr uint32_t kPoison = ~0u;

  /// Calls f(lane, word, row, column) for pairs of c. Lane 4 g + t holds row g + 8 i and the
  /// columns n + 2 t and n + 2 t + 1, in its word n / 2 + 2 i and the next one.
  template <class F>
  void for_each_pair(uint32_t n, F f) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < 2; ++i)
        f(lane, n / 2 + 2 * i, lane / 4 + 8 * i, lane % 4 * 2);
  }

  void add_columns(const uint16_t (&a)[kWarpRows][kDepth], uint32_t n) {
    MmaTile tile;
    std::memcpy(tile.a, a, sizeof a);
    for (uint32_t k = 0; k < kDepth; ++k)
      for (uint32_t j = 0; j < 8; ++j)
        tile.b[k][j] =
            element(args_.b_block_bytes != 0 ? n_major(args_.b, args_.b_block_bytes, k, n + j)
                                             : k_major(args_.b, n + j, k));
    for_each_pair(n, [&](uint32_t lane, uint32_t word, uint32_t row, uint32_t column) {
      const uint32_t zero[2] = {}; // zeros of floats and of handles
      const uint32_t *c = kept_.empty() ? c_[lane] + word : &kept_[lane * args_.words + word];
      std::memcpy(&tile.c[row][column], args_.accumulate ? c : zero, 8);
    });
    if (args_.format == WgmmaFormat::kField)
      field_block(tile);
    else
      block_fma_m16n8k16(tile,
                         args_.format == WgmmaFormat::kBf16 ? MmaFormat::kBf16 : MmaFormat::kFp16);
    for_each_pair(n, [&](uint32_t lane, uint32_t word, uint32_t row, uint32_t column) {
      std::memcpy(c_[lane] + word, &tile.c[row][column], 8);
    });
  }

  WgmmaArgs args_;
  uint32_t warp_; // in its group
  std::array<uint32_t *, kLanes> c_;
  std::array<const uint32_t *, kLanes> a_;
  std::array<std::array<uint32_t, 4>, kLanes> operands_; // registers of A at issue
  std::vector<uint32_t> kept_;                           // c at issue
};

/// Checks what the operation reads of a matrix: 32 bytes of each of `rows` rows.
void read_k_major(const std::byte *p, uint32_t first, uint32_t rows, simt::Site site) {
  for (uint32_t r = first; r < first + rows; ++r)
    for (uint32_t k = 0; k < kDepth; k += 8)
      simt::access_for_lane(0, simt::Space::kShared, simt::AccessKind::kMatrixRead,
                            swizzled(k_major(p, r, k)), 16, 16, site);
}
void read_n_major(const std::byte *p, uint32_t block_bytes, uint32_t columns, simt::Site site) {
  for (uint32_t k = 0; k < kDepth; ++k)
    for (uint32_t n = 0; n < columns; n += 8)
      simt::access_for_lane(0, simt::Space::kShared, simt::AccessKind::kMatrixRead,
                            swizzled(n_major(p, block_bytes, k, n)), 16, 16, site);
}

/// A matrix begins at a multiple of 1024 bytes, or inside the row that begins there.
void check_start(const std::byte *p, const char *name, simt::Site site) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (address % kGroupBytes >= kRowBytes || address % 32 != 0)
    simt::report(simt::HazardKind::kMisaligned,
                 std::string("matrix ") + name + " of wgmma begins inside a group of 8 rows", site);
}

} // namespace

void apply_wgmma(const WarpCall &call) {
  const WgmmaArgs args = Operation::args_of(call, 0);
  for (uint32_t lane = 1; lane < kLanes; ++lane) {
    const WgmmaArgs &other = Operation::args_of(call, lane);
    if (other.a == args.a && other.b == args.b && other.accumulate == args.accumulate &&
        other.b_block_bytes == args.b_block_bytes)
      continue;
    simt::report_for_lane(lane, simt::HazardKind::kDivergentBarrier,
                          "wgmma with other matrices than in lane 0", call.site);
  }
  constexpr uint32_t kGroupWarps = 4;
  const uint32_t warp = simt::thread_view.thread / kLanes % kGroupWarps, n = 2 * args.words;
  if (args.registers == nullptr) {
    check_start(args.a, "a", call.site);
    read_k_major(args.a, warp * kWarpRows, kWarpRows, call.site);
  }
  check_start(args.b, "b", call.site);
  if (args.b_block_bytes == 0)
    read_k_major(args.b, 0, n, call.site);
  else
    read_n_major(args.b, args.b_block_bytes, n, call.site);
  simt::matrix_issue(std::make_unique<Operation>(call, warp), call.site);
}

void apply_wgmma_fence(const WarpCall &call) { simt::matrix_fence(call.site); }
void apply_wgmma_commit(const WarpCall &call) { simt::matrix_commit(call.site); }
void apply_wgmma_wait(const WarpCall &call) {
  const auto &named = *static_cast<const WgmmaRegisters *>(call.in[0]);
  simt::matrix_wait(static_cast<uint32_t>(call.arg[0]), named, call.site);
}

} // namespace assay::n_simt::arch::detail
