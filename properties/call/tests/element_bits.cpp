// SPDX-License-Identifier: Apache-2.0
// The encodings of properties/call/element.h for tests in other languages: `element_bits to DTYPE`
// reads fp32 words and writes the bits of each in DTYPE, `element_bits from DTYPE` the other way
// round; words of 32 bits in this machine's order, from standard input to standard output.
#include <bit>
#include <cstdio>
#include <cstring>

#include "properties/call/element.h"

int main(int argc, char **argv) {
  using namespace assay;
  static constexpr const char *kNames[] = {"fp16", "bf16", "fp32", "e4m3", "e5m2"};
  for (int d = 0; argc == 3 && d < 5; ++d) {
    if (std::strcmp(argv[2], kNames[d]) != 0) continue;
    const bool to = std::strcmp(argv[1], "to") == 0;
    for (uint32_t word; std::fread(&word, sizeof word, 1, stdin) == 1;) {
      const auto dtype = static_cast<Dtype>(d);
      const uint32_t out = to ? to_bits(dtype, std::bit_cast<float>(word))
                              : std::bit_cast<uint32_t>(from_bits(dtype, word));
      std::fwrite(&out, sizeof out, 1, stdout);
    }
    return 0;
  }
  return 2;
}
