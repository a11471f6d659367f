// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

using Bytes = std::vector<uint8_t>;

/// The first byte is kCodecVersion (fields.h), the only one that is written. Cases of older
/// versions decode to what they were, without the fields that came later; other values read as this
/// version.
/// Total: every byte string, the empty one included, is a well-formed case under `limits`. Fields
/// are read in order, each as one choice; missing bytes read as zero, the simplest choice. Bytes
/// left over are ignored. Sizes are weighted towards tile, page and split boundaries.
Problem decode(std::span<const uint8_t> bytes, const Limits &limits);

/// decode(..., limits, family): as decode, but the family is given instead of read (the bytes then
/// start with the next field).
Problem decode_family(std::span<const uint8_t> bytes, const Limits &limits, Family family);

/// Bytes with decode(encode(p, limits), limits) == p for every p that decode(., limits) can return.
Bytes encode(const Problem &p, const Limits &limits);

} // namespace assay
