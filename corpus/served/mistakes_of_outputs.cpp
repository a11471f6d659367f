// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/mistakes.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/exact/dtype.h"

namespace assay::served {
namespace {

using Row = std::vector<uint16_t>;

double number(uint16_t bits) { return oracle::load_element(ASSAY_BF16, &bits, 0); }

int largest(const Row &row) {
  const auto less = [](uint16_t a, uint16_t b) { return (a & 0x7FFF) < (b & 0x7FFF); };
  return static_cast<int>(std::max_element(row.begin(), row.end(), less) - row.begin());
}

/// Changes the row's head where it is written.
Wrong change(ServedCall &call, const std::function<Wrong(Row &, float &)> &by) {
  Row o = call.o(call.row(), call.head());
  float lse = call.lse(call.row(), call.head());
  const Wrong wrong = by(o, lse);
  call.write(call.row(), call.head(), o, lse);
  return wrong;
}

/// The first number of the format above all that a right kernel may give. The one below it must
/// pass, or the bound that it is put beyond is not the judge's.
Wrong beyond_bound(ServedCall &call) {
  const int dim = 77;
  const oracle::ElementBounds e = call.bounds()[static_cast<size_t>(dim)];
  Row o = call.o(call.row(), call.head());
  const float lse = call.lse(call.row(), call.head());
  uint16_t &bits = o[static_cast<size_t>(dim)];
  const auto outside = [&](uint16_t b) { return number(b) > e.mid + e.rad + e.bound; };
  const auto up = [](uint16_t b) {
    return static_cast<uint16_t>(b == 0x8000 ? 0 : b & 0x8000 ? b - 1 : b + 1);
  };
  uint16_t inside = bits;
  while (!outside(up(inside)))
    inside = up(inside);
  bits = inside;
  call.write(call.row(), call.head(), o, lse);
  if (!call.open_of_first().empty())
    throw std::logic_error("the last number within the bound is not inside");
  bits = up(inside);
  call.write(call.row(), call.head(), o, lse);
  return {dim};
}

Mistake of_row(const std::string &name, std::function<Wrong(Row &, float &)> by) {
  return {name, [by](ServedCall &call) { return change(call, by); }};
}

/// The outputs of another head or row in place of the own ones.
Mistake of_other(const std::string &name, int heads_away, int rows_away) {
  return {name, [=](ServedCall &call) {
            call.write(call.row(), call.head(),
                       call.o(call.row() + rows_away, call.head() + heads_away),
                       call.lse(call.row() + rows_away, call.head() + heads_away));
            return Wrong{};
          }};
}

Wrong exchange_rows(ServedCall &call) {
  const int row = call.row(), other = row + 1, head = call.head();
  const Row o = call.o(row, head);
  const float lse = call.lse(row, head);
  call.write(row, head, call.o(other, head), call.lse(other, head));
  call.write(other, head, o, lse);
  return {.others = {{other, head}}};
}

} // namespace

std::vector<Mistake> mistakes_of_outputs() {
  return {
      {"an element's last bit beyond its bound", beyond_bound},
      of_row("an element's sign",
             [](Row &o, float &) {
               const int dim = largest(o);
               o[static_cast<size_t>(dim)] ^= 0x8000;
               return Wrong{dim};
             }),
      of_row("an element not written",
             [](Row &o, float &) {
               o[127] = 0xFFFF;
               return Wrong{127};
             }),
      of_row("an element that is zero",
             [](Row &o, float &) {
               const int dim = largest(o);
               o[static_cast<size_t>(dim)] = 0;
               return Wrong{dim};
             }),
      of_row("an element of the neighbouring component",
             [](Row &o, float &) {
               size_t dim = 0;
               for (size_t i = 0; i + 1 < o.size(); ++i)
                 if (std::fabs(number(o[i]) - number(o[i + 1])) >
                     std::fabs(number(o[dim]) - number(o[dim + 1])))
                   dim = i;
               o[dim] = o[dim + 1];
               return Wrong{static_cast<int>(dim)};
             }),
      of_row("two elements exchanged",
             [](Row &o, float &) {
               std::swap(o[static_cast<size_t>(largest(o))], o[3]);
               return Wrong{};
             }),
      of_row("a row not written",
             [](Row &o, float &lse) {
               std::fill(o.begin(), o.end(), uint16_t{0xFFFF});
               lse = NAN;
               return Wrong{};
             }),
      of_row("half of a row not written",
             [](Row &o, float &) {
               std::fill(o.begin() + 64, o.end(), uint16_t{0});
               return Wrong{};
             }),
      {"the row of the step before",
       [](ServedCall &call) {
         Call wrong = call.right();
         wrong.p.q = call.stale_queries();
         call.plant(wrong);
         return Wrong{};
       }},
      of_other("the row of the head in front", -1, 0),
      of_other("the row of the request in front", 0, -1),
      {"two rows exchanged", exchange_rows},
      of_row("a head's outputs times 1 + 2^-8",
             [](Row &o, float &) {
               for (uint16_t &bits : o)
                 oracle::store_element(
                     ASSAY_BF16, &bits, 0,
                     static_cast<float>(oracle::round_to(oracle::format_of(ASSAY_BF16),
                                                         number(bits) * (1.0 + 0x1p-8))));
               return Wrong{};
             }),
      of_row("an LSE in the other base",
             [](Row &, float &lse) {
               lse *= 1.44269504f;
               return Wrong{kLse};
             }),
      of_row("an LSE off by 2^-8",
             [](Row &, float &lse) {
               lse += 0x1p-8f;
               return Wrong{kLse};
             }),
      {"the LSE of the head in front",
       [](ServedCall &call) {
         call.write(call.row(), call.head(), call.o(call.row(), call.head()),
                    call.lse(call.row(), call.head() - 1));
         return Wrong{kLse};
       }},
      {"one head's scores times 1 + 2^-8",
       [](ServedCall &call) {
         Call wrong = call.right();
         wrong.p.sm_scale *= 1.0f + 0x1p-8f;
         call.plant(wrong);
         return Wrong{};
       }},
  };
}

} // namespace assay::served
