// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/origin.h"

#include <algorithm>

#include "properties/call/materialise.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

/// Outputs as they were not, bit for bit.
void invert_outputs(Tensors &t) {
  for (Buffer &buffer : t.buffers)
    for (std::byte &byte : buffer.bytes)
      if (buffer.output) byte = ~byte;
}

/// Zeros where no key is: finite, and in reach of every dtype.
void clear_dead_keys(Tensors &t) {
  for (const CacheView &cache : t.caches)
    for (const int index : {cache.k, cache.v}) {
      Buffer &buffer = t.buffers[static_cast<size_t>(index)];
      for (size_t i = 0; i < buffer.bytes.size(); ++i)
        if (!buffer.live[i]) buffer.bytes[i] = std::byte{0};
    }
}

} // namespace

Origin origin_of(const Problem &p, int row, int head, int dim, Sut &sut) {
  // Outputs are inputs as well; or no single value is wrong.
  if (p.in_place != InPlace::kNo || dim == Symptom::kRow) return Origin::kComputed;
  const Tensors plain = materialise(p);
  const View &view = dim < 0 ? plain.lse : plain.o;
  if (view.buffer < 0 || row >= plain.rows() || head >= plain.heads() || dim >= p.head_dim)
    return Origin::kComputed;
  const auto element = [&](const Tensors &t) { return t.bits(view, row, head, std::max(dim, 0)); };
  Tensors inverted = plain;
  invert_outputs(inverted);
  const Outcome run = run_tensors(plain, sut), other = run_tensors(inverted, sut);
  if (!run.ok() || !other.ok()) return Origin::kComputed;
  if (element(run.after) == element(plain) && element(other.after) == element(inverted))
    return Origin::kUnwritten;
  Tensors cleared = plain;
  clear_dead_keys(cleared);
  const Outcome without = run_tensors(std::move(cleared), sut);
  // Twice alike, so that what differs is not a kernel's own whim.
  const bool follows = without.ok() && element(other.after) == element(run.after) &&
                       element(without.after) != element(run.after);
  return follows ? Origin::kDeadMemory : Origin::kComputed;
}

const char *name_of(Origin origin) {
  return origin == Origin::kUnwritten    ? "never written"
         : origin == Origin::kDeadMemory ? "of memory without a key"
                                         : "computed";
}

const char *in_words(Origin origin) {
  switch (origin) {
  case Origin::kComputed:
    return "";
  case Origin::kUnwritten:
    return "never written: it still holds what was there before the call";
  case Origin::kDeadMemory:
    return "made of memory that holds no key: other bytes there make another value";
  }
  return "";
}

} // namespace assay
