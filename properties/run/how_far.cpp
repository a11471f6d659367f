// SPDX-License-Identifier: Apache-2.0
#include "properties/run/how_far.h"

#include <cmath>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr double kLog2e = 1.44269504088896340736, kLn2 = 0.69314718055994530942;

struct Named {
  double value;
  std::string name;
};

std::vector<Named> sizes(const Problem &p) {
  std::vector<Named> out;
  const auto add = [&](int size, const char *name) {
    if (size > 1) out.push_back({double(size), name});
  };
  if (!is_attention(p)) {
    add(p.family == Family::kMergeStates ? p.num_states : 2, "the number of states");
    return out;
  }
  add(p.group_size, "the group size");
  add(p.num_kv_heads, "the number of kv heads");
  add(p.page_size, "the page size");
  add(p.num_splits, "the number of splits");
  add(static_cast<int>(p.levels.size()), "the number of levels");
  return out;
}

/// What makes outputs `factor` times too large; empty: nothing known. `blur`: relative, of the
/// factor.
std::string name_of_factor(const Problem &p, double factor, double blur) {
  const auto is = [&](double value) { return std::fabs(factor / value - 1) <= blur; };
  if (is(-1)) return "the sign";
  if (is(kLog2e)) return "log2 e: a base-2 logarithm or exponential where a natural one belongs";
  if (is(kLn2)) return "ln 2: a natural logarithm or exponential where a base-2 one belongs";
  std::string names;
  for (const Named &size : sizes(p))
    if (is(size.value) || is(1 / size.value)) names += (names.empty() ? "" : " or ") + size.name;
  if (!names.empty()) return names;
  int exponent = 0;
  const bool power = std::fabs(std::frexp(factor, &exponent) * 2 - 1) <= blur;
  if (power && exponent != 1) return fmt::format("2^{}", exponent - 1);
  return "";
}

/// What moves an LSE by `shift`, in its own base.
std::string name_of_shift(const Problem &p, double shift, double blur) {
  const double unit = p.lse_base == LseBase::kBase2 ? 1 : kLn2; // log 2
  const auto is = [&](double value) { return std::fabs(shift - value) <= blur; };
  std::vector<Named> named = sizes(p);
  named.push_back({2, "twice"});
  for (const Named &size : named)
    for (int sign : {1, -1})
      if (is(sign * unit * std::log2(size.value)))
        return size.name == "twice" ? fmt::format("{}log 2: weights {}", sign < 0 ? "-" : "",
                                                  sign < 0 ? "half as large" : "that count twice")
                                    : fmt::format("{}log of {}", sign < 0 ? "-" : "", size.name);
  return "";
}

} // namespace

std::string how_far(const Problem &shrunk, const Symptom &s) {
  if (s.origin != Origin::kComputed) return in_words(s.origin);
  if (!s.of_element() || !std::isfinite(s.got) || !std::isfinite(s.expected)) return "";
  const double off = s.got - s.expected;
  std::string text = fmt::format("off by {:.3g}", off);
  if (std::isfinite(s.excess())) text += fmt::format(", {:.3g} times what is allowed", s.excess());
  // A factor has a name only where it is known to a percent.
  constexpr double kSharp = 0.01;
  const double unsure = std::isfinite(s.allowed) ? s.allowed : 0;
  const double blur = (unsure + std::fabs(s.expected) * 0x1p-12) / std::fabs(s.expected);
  if (blur <= kSharp) {
    const double factor = s.got / s.expected;
    if (const std::string name = name_of_factor(shrunk, factor, blur); !name.empty())
      return text + fmt::format("; a factor of {:.5g}: {}", factor, name);
  }
  if (s.dim == Symptom::kLse && unsure <= kSharp * kLn2) {
    const double slack = unsure + std::fabs(s.expected) * 0x1p-20;
    if (const std::string name = name_of_shift(shrunk, off, slack); !name.empty())
      return text + "; " + name;
  }
  return text;
}

} // namespace assay
