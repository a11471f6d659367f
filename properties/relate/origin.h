// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "properties/sut/sut.h"

namespace assay {

/// Where a wrong output comes from, found out by running the case again: with other bytes in the
/// outputs before the call, and with other bytes in K and V where no key is.
enum class Origin {
  kComputed,  ///< neither of the following
  kUnwritten, ///< it holds what was there before the call, whatever that is
  kDeadMemory ///< it follows what stands where no key is
};

/// Where an element of O comes from, or with `dim` below 0 the LSE.
Origin origin_of(const Problem &p, int row, int head, int dim, Sut &sut);

const char *name_of(Origin origin);
/// In words, of an element; empty of what was computed.
const char *in_words(Origin origin);

} // namespace assay
