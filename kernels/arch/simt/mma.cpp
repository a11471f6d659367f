// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/mma.cuh"

#include <cstring>

namespace assay::n_simt::arch::detail {
namespace {

using simt::kLanes;
using simt::WarpCall;

uint16_t low_half(uint32_t pair) { return static_cast<uint16_t>(pair); }
uint16_t high_half(uint32_t pair) { return static_cast<uint16_t>(pair >> 16); }

// ---- 8 x 8 matrices of 16 bits ----

using Matrix8x8 = uint16_t[8][8];

uint32_t fragment(const Matrix8x8 &m, uint32_t lane, bool transposed) {
  const uint32_t g = lane / 4, t = lane % 4;
  return transposed ? m[2 * t][g] | static_cast<uint32_t>(m[2 * t + 1][g]) << 16
                    : m[g][2 * t] | static_cast<uint32_t>(m[g][2 * t + 1]) << 16;
}

} // namespace

void apply_ldmatrix(const WarpCall &call) {
  const int matrices = call.arg[0];
  const bool transposed = static_cast<const LdmatrixArgs *>(call.in[0])->transposed;
  for (int i = 0; i < matrices; ++i) {
    Matrix8x8 m;
    for (uint32_t r = 0; r < 8; ++r) {
      const uint32_t lane = static_cast<uint32_t>(i) * 8 + r;
      const void *row = static_cast<const LdmatrixArgs *>(call.in[lane])->row;
      simt::access_for_lane(lane, simt::Space::kShared, simt::AccessKind::kRead, row, 16, 16,
                            call.site);
      std::memcpy(m[r], row, 16);
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      static_cast<uint32_t *>(call.out[lane])[i] = fragment(m, lane, transposed);
  }
}

void apply_movmatrix(const WarpCall &call) {
  Matrix8x8 m;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t pair = *static_cast<const uint32_t *>(call.in[lane]);
    m[lane / 4][lane % 4 * 2] = low_half(pair);
    m[lane / 4][lane % 4 * 2 + 1] = high_half(pair);
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    *static_cast<uint32_t *>(call.out[lane]) = fragment(m, lane, true);
}

// ---- mma ----

template <MmaFormat kFormat>
void apply_mma(const WarpCall &call) {
  MmaTile tile;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto &args = *static_cast<const MmaArgs *>(call.in[lane]);
    const float *c = static_cast<const float *>(call.out[lane]);
    const uint32_t g = lane / 4, t2 = lane % 4 * 2;
    for (uint32_t r = 0; r < 4; ++r) {
      const uint32_t row = g + r % 2 * 8, column = t2 + r / 2 * 8;
      tile.a[row][column] = low_half(args.a[r]);
      tile.a[row][column + 1] = high_half(args.a[r]);
    }
    for (uint32_t r = 0; r < 2; ++r) {
      tile.b[t2 + r * 8][g] = low_half(args.b[r]);
      tile.b[t2 + r * 8 + 1][g] = high_half(args.b[r]);
    }
    std::memcpy(&tile.c[g][t2], c, 8);
    std::memcpy(&tile.c[g + 8][t2], c + 2, 8);
  }
  block_fma_m16n8k16(tile, kFormat);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    float *c = static_cast<float *>(call.out[lane]);
    std::memcpy(c, &tile.c[lane / 4][lane % 4 * 2], 8);
    std::memcpy(c + 2, &tile.c[lane / 4 + 8][lane % 4 * 2], 8);
  }
}

template void apply_mma<MmaFormat::kBf16>(const WarpCall &);
template void apply_mma<MmaFormat::kFp16>(const WarpCall &);

} // namespace assay::n_simt::arch::detail
