// SPDX-License-Identifier: Apache-2.0
#include "oracle/exact/sums.h"

#include <algorithm>
#include <cmath>

namespace assay::oracle {
namespace {

constexpr int kLanes = 8;

} // namespace

DotResult dot(const double *q, const float *k, int head_dim) {
  double value[kLanes] = {}, magnitude[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double product = q[i + lane] * static_cast<double>(k[i + lane]);
      value[lane] += product;
      magnitude[lane] += std::fabs(product);
    }
  }
  for (; i < head_dim; ++i) {
    const double product = q[i] * static_cast<double>(k[i]);
    value[0] += product;
    magnitude[0] += std::fabs(product);
  }
  DotResult result{0.0, 0.0};
  for (int lane = 0; lane < kLanes; ++lane) {
    result.value += value[lane];
    result.magnitude += magnitude[lane];
  }
  return result;
}

void weighted_sums(const float *v, size_t keys, int head_dim, const double *coefficient,
                   double *sum) {
  std::fill(sum, sum + head_dim, 0.0);
  for (size_t j = 0; j < keys; ++j) {
    const float *row = v + j * static_cast<size_t>(head_dim);
    const double w = coefficient[j];
    for (int i = 0; i < head_dim; ++i)
      sum[i] += w * static_cast<double>(row[i]);
  }
}

void along(const float *v, size_t keys, int head_dim, const double *u, double *product) {
  for (size_t j = 0; j < keys; ++j) {
    const float *row = v + j * static_cast<size_t>(head_dim);
    double lane[kLanes] = {};
    int i = 0;
    for (; i + kLanes <= head_dim; i += kLanes)
      for (int at = 0; at < kLanes; ++at)
        lane[at] += u[i + at] * static_cast<double>(row[i + at]);
    for (; i < head_dim; ++i)
      lane[0] += u[i] * static_cast<double>(row[i]);
    product[j] = 0.0;
    for (const double part : lane)
      product[j] += part;
  }
}

void add_outer(const float *v, int head_dim, double weight, double *sum) {
  for (int i = 0; i < head_dim; ++i) {
    const double own = weight * static_cast<double>(v[i]);
    double *row = sum + static_cast<size_t>(i) * static_cast<size_t>(head_dim);
    for (int k = i; k < head_dim; ++k)
      row[k] += own * static_cast<double>(v[k]);
  }
}

void weighted_magnitudes(const float *v, size_t keys, int head_dim, const double *coefficient,
                         double *sum) {
  std::fill(sum, sum + head_dim, 0.0);
  for (size_t j = 0; j < keys; ++j) {
    const float *row = v + j * static_cast<size_t>(head_dim);
    const double w = std::fabs(coefficient[j]);
    for (int i = 0; i < head_dim; ++i)
      sum[i] += w * std::fabs(static_cast<double>(row[i]));
  }
}

void centered_magnitudes(const float *v, size_t keys, int head_dim, const double *a,
                         const double *b, const double *center, double *sum) {
  std::fill(sum, sum + head_dim, 0.0);
  for (size_t j = 0; j < keys; ++j) {
    const float *row = v + j * static_cast<size_t>(head_dim);
    const double aj = a[j], bj = b[j];
    for (int i = 0; i < head_dim; ++i) {
      sum[i] += std::fabs(aj * static_cast<double>(row[i]) - bj * center[i]);
    }
  }
}

} // namespace assay::oracle
