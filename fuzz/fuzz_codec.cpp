// SPDX-License-Identifier: Apache-2.0
// The byte codec and the .case text, from bytes (first byte even; its upper bits pick the limits):
//   1. Every byte string decodes to a case that is well formed under the limits and the full ones.
//   2. decode(encode(p)) == p, encode is a function of the case, trailing bytes mean nothing.
//   3. The text of every decoded case parses back to it; formatting is a fixed point.
// and from raw text (first byte odd):
//   4. The parser never crashes; what it accepts is well formed and satisfies 3 as a whole case.
//   5. What it refuses has a message of printable characters and a line that exists.
#include "fuzz/codec_checks.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_codec)
