// SPDX-License-Identifier: Apache-2.0
// An assay_array that was checked.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "kernels/abi/assay_judge.h"

namespace assay::oracle {

/** What an axis must be: so long, or with -1 any length. */
struct Axis {
  const char *name;
  int64_t size = -1;
};

/** An array with its name, for messages. Every function throws ArrayError. */
class ArrayView {
public:
  ArrayView(const char *name, const assay_array &array) : name_(name), array_(array) {}

  bool given() const { return array_.data != nullptr; }
  const ArrayView &require(std::initializer_list<Axis> axes,
                           std::initializer_list<int32_t> dtypes) const;
  int64_t size(int axis) const { return array_.shape[axis]; }
  int64_t stride(int axis) const { return array_.stride[axis]; }
  int32_t dtype() const { return array_.dtype; }
  const void *data() const { return array_.data; }

  int64_t integer(int64_t at) const; ///< element of a vector of ASSAY_INT32 or ASSAY_INT64
  int64_t integer(int64_t row, int64_t at) const; ///< element of a matrix
  std::vector<float> floats() const;              ///< all elements of a vector
  float number(int64_t row, int64_t at) const;    ///< element of ASSAY_FP32; a vector is row 0
  int dims() const { return array_.dims; }

  [[noreturn]] void fail(const std::string &what) const;
  [[noreturn]] void unsupported(const std::string &what) const;

private:
  int64_t load(int64_t offset) const;

  const char *name_;
  const assay_array &array_;
};

} // namespace assay::oracle
