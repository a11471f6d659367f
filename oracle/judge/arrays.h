// SPDX-License-Identifier: Apache-2.0
// Arrays of somebody else as rows: the builder behind assay_judge.h. Everything about them is
// checked before any of them is read; page ids and lengths as they are read.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/abi/assay_judge.h"
#include "oracle/rows/rows.h"

namespace assay::oracle {

/** Arguments that do not fit each other, or that no bound is known for; the message names them. */
class ArrayError : public std::invalid_argument {
public:
  ArrayError(assay_status status, const std::string &what)
      : std::invalid_argument(what), status_(status) {}
  assay_status status() const { return status_; }

private:
  assay_status status_;
};

CallRows rows_of(const assay_judge_attention_params &params);
CallRows rows_of(const assay_judge_merge_params &params);

} // namespace assay::oracle
