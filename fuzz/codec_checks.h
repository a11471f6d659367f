// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "fuzz/target.h"
#include "properties/case/case_text.h"
#include "properties/case/codec.h"

namespace assay::fuzz {

/// The functions under test; the positive controls replace them one at a time.
struct CodecUnderTest {
  Problem (*decode)(std::span<const uint8_t>, const Limits &) = assay::decode;
  Bytes (*encode)(const Problem &, const Limits &) = assay::encode;
  std::variant<Case, CaseError> (*parse)(std::string_view) = assay::parse_case;
  std::string (*format)(const Case &) = assay::format_case;
};

/// First byte: even = the rest is an encoded case, odd = the rest is the text of one.
std::string check_codec_with(const CodecUnderTest &codec, Input input);
inline std::string check_codec(Input input) { return check_codec_with({}, input); }

} // namespace assay::fuzz
