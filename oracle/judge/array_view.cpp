// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/array_view.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "oracle/judge/arrays.h"

namespace assay::oracle {
namespace {

std::string dtype_name(int32_t dtype) {
  switch (dtype) {
  case ASSAY_FP16:
    return "fp16";
  case ASSAY_BF16:
    return "bf16";
  case ASSAY_FP32:
    return "fp32";
  case ASSAY_E4M3:
    return "e4m3";
  case ASSAY_E5M2:
    return "e5m2";
  case ASSAY_INT32:
    return "int32";
  case ASSAY_INT64:
    return "int64";
  case ASSAY_UINT8:
    return "uint8";
  case ASSAY_INT8:
    return "int8";
  default:
    return "type " + std::to_string(dtype);
  }
}

std::string shape_text(std::initializer_list<Axis> axes) {
  std::string text;
  for (const Axis &axis : axes)
    text += (text.empty() ? "[" : ", ") + std::string(axis.name) +
            (axis.size < 0 ? "" : " " + std::to_string(axis.size));
  return text + "]";
}

/// Offsets of all elements fit into 63 bits with room for a factor of the element's size.
bool offsets_fit(const assay_array &a) {
  constexpr double kMaxOffset = 0x1p58;
  double reach = 0;
  for (int i = 0; i < a.dims; ++i)
    reach += static_cast<double>(std::max<int64_t>(a.shape[i] - 1, 0)) *
             static_cast<double>(a.stride[i]);
  return reach < kMaxOffset;
}

} // namespace

void ArrayView::fail(const std::string &what) const {
  throw ArrayError(ASSAY_INVALID_ARGUMENT, name_ + what);
}
void ArrayView::unsupported(const std::string &what) const {
  throw ArrayError(ASSAY_UNSUPPORTED, name_ + what);
}

const ArrayView &ArrayView::require(std::initializer_list<Axis> axes,
                                    std::initializer_list<int32_t> dtypes) const {
  if (!given()) fail(" is not given, expected " + shape_text(axes));
  if (array_.dims != static_cast<int32_t>(axes.size()))
    fail(" has " + std::to_string(array_.dims) + " dimensions, expected " + shape_text(axes));
  int i = 0;
  for (const Axis &axis : axes) {
    const int64_t size = array_.shape[i];
    if (size < 0 || (axis.size >= 0 && size != axis.size))
      fail("'s axis " + std::to_string(i) + " is " + std::to_string(size) + " long, expected " +
           shape_text(axes));
    if (array_.stride[i] < 0)
      fail(" has stride " + std::to_string(array_.stride[i]) + ", expected 0 or more");
    ++i;
  }
  if (!offsets_fit(array_)) fail(" reaches beyond 2^58 elements");
  if (std::find(dtypes.begin(), dtypes.end(), array_.dtype) == dtypes.end()) {
    std::string list;
    for (int32_t dtype : dtypes)
      list += (list.empty() ? "" : ", ") + dtype_name(dtype);
    unsupported(" is " + dtype_name(array_.dtype) + ", judged are " + list);
  }
  return *this;
}

int64_t ArrayView::load(int64_t offset) const {
  if (array_.dtype == ASSAY_INT64) {
    int64_t value = 0;
    std::memcpy(&value, static_cast<const char *>(array_.data) + offset * 8, sizeof value);
    return value;
  }
  int32_t value = 0;
  std::memcpy(&value, static_cast<const char *>(array_.data) + offset * 4, sizeof value);
  return value;
}

int64_t ArrayView::integer(int64_t at) const { return load(at * array_.stride[0]); }
int64_t ArrayView::integer(int64_t row, int64_t at) const {
  return load(row * array_.stride[0] + at * array_.stride[1]);
}

float ArrayView::number(int64_t row, int64_t at) const {
  const int64_t offset =
      dims() == 2 ? row * array_.stride[0] + at * array_.stride[1] : at * array_.stride[0];
  float value = 0;
  std::memcpy(&value, static_cast<const char *>(array_.data) + offset * 4, sizeof value);
  return value;
}

std::vector<float> ArrayView::floats() const {
  std::vector<float> out(static_cast<size_t>(array_.shape[0]));
  for (size_t i = 0; i < out.size(); ++i)
    std::memcpy(&out[i],
                static_cast<const char *>(array_.data) +
                    static_cast<int64_t>(i) * array_.stride[0] * 4,
                sizeof(float));
  return out;
}

} // namespace assay::oracle
