// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

using Bytes = std::vector<uint8_t>;

/// First byte of an encoded case; only this value is written. Cases of versions 1 and 2, which had
/// no launch fields, and of version 3, whose tensors lay alike, decode to what they were; every
/// other value reads as this one.
inline constexpr uint8_t kCodecVersion = 4;

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
