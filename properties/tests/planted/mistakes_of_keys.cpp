// SPDX-License-Identifier: Apache-2.0
// Keys, pages and splits that one head takes for others.
#include <cmath>

#include "properties/tests/planted/mistakes.h"

namespace assay::planted {
namespace {

/// What the head gives when it is given another call.
Mistake seen(const std::string &name, std::function<void(ServedCall &, Call &)> change) {
  return {name, [change](ServedCall &call) {
            Call wrong = call.right();
            change(call, wrong);
            call.plant(wrong);
            return Wrong{};
          }};
}

int32_t &length(ServedCall &call, Call &wrong) {
  return wrong.lengths[static_cast<size_t>(call.sizes().request)];
}

/// Key `from`, its value too, in the place of key `to`.
void copy_key(ServedCall &call, Call &wrong, int to, int from) {
  Call right = call.right();
  call.copy(call.key(wrong, to, call.kv_head()), call.key(right, from, call.kv_head()),
            call.token_bytes());
  call.copy(call.value(wrong, to, call.kv_head()), call.value(right, from, call.kv_head()),
            call.token_bytes());
}

/// The last key in its place, and one key less.
void drop_key(ServedCall &call, Call &wrong, int position) {
  call.take_spare_page(wrong, position);
  copy_key(call, wrong, position, call.last_key());
  --length(call, wrong);
}

/// Keys of one weight would hide it.
void exchange_values(ServedCall &call, Call &wrong) {
  Call right = call.right();
  const int a = call.middle_key(), b = a + 1;
  call.take_spare_page(wrong, a);
  call.copy(call.value(wrong, a, call.kv_head()), call.value(right, b, call.kv_head()),
            call.token_bytes());
  call.copy(call.value(wrong, b, call.kv_head()), call.value(right, a, call.kv_head()),
            call.token_bytes());
}

/// Keys or values of the page behind it, in the middle key's page.
void take_next_page(ServedCall &call, Call &wrong, bool keys) {
  Call right = call.right();
  const int first = call.middle_key() / ServedCall::kPage * ServedCall::kPage;
  call.take_spare_page(wrong, first);
  const auto at = [&](Call &c, int position) {
    return keys ? call.key(c, position, call.kv_head()) : call.value(c, position, call.kv_head());
  };
  for (int i = 0; i < ServedCall::kPage; ++i)
    call.copy(at(wrong, first + i), at(right, first + ServedCall::kPage + i), call.token_bytes());
}

/// In [begin, end), the kv head in front.
void take_wrong_head(ServedCall &call, Call &wrong, int begin, int end, bool keys) {
  Call right = call.right();
  const int own = call.kv_head();
  for (int position = begin; position < end; ++position) {
    if (position % ServedCall::kPage == 0) call.take_spare_page(wrong, position);
    if (keys)
      call.copy(call.key(wrong, position, own), call.key(right, position, own - 1),
                call.token_bytes());
    call.copy(call.value(wrong, position, own), call.value(right, position, own - 1),
              call.token_bytes());
  }
}

int32_t &middle_page(ServedCall &call, Call &wrong) {
  return call.page_of(wrong, call.sizes().request, call.middle_key());
}

} // namespace

std::vector<int> split_ends(const ServedCall &call) {
  return {call.split_begin(), call.split_begin() + call.sizes().split, call.length()};
}

void write_merged(ServedCall &call, const std::vector<int> &ends, const std::vector<int> &slot,
                  const std::vector<double> &lse_factor) {
  std::vector<std::vector<double>> parts;
  int begin = 0;
  for (const int end : ends) {
    Call part = call.right();
    if (end < call.length()) length(call, part) = end;
    call.drop_pages(part, 0, begin);
    parts.push_back(call.exact(part));
    begin = end;
  }
  std::vector<double> row(ServedCall::kDim + 1, 0.0);
  double sum = 0.0, mass = 0.0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double weight = std::exp(parts[i].back() * lse_factor[i] - parts[0].back());
    sum += weight;
    mass += std::exp(parts[i].back() - parts[0].back());
    for (size_t dim = 0; dim < ServedCall::kDim; ++dim)
      row[dim] += weight * parts[static_cast<size_t>(slot[i])][dim];
  }
  for (double &x : row)
    x /= sum;
  row.back() = parts[0].back() + std::log(mass);
  call.write_exact(row);
}

std::vector<Mistake> mistakes_of_keys() {
  return {
      seen("one key dropped",
           [](ServedCall &call, Call &wrong) { drop_key(call, wrong, call.middle_key()); }),
      seen("the first key dropped",
           [](ServedCall &call, Call &wrong) { drop_key(call, wrong, call.first_key()); }),
      seen("the last key dropped", [](ServedCall &call, Call &wrong) { --length(call, wrong); }),
      seen("a key behind the end", [](ServedCall &call, Call &wrong) { ++length(call, wrong); }),
      seen("a key twice",
           [](ServedCall &call, Call &wrong) {
             call.take_spare_page(wrong, call.middle_key());
             copy_key(call, wrong, call.middle_key() + 1, call.middle_key());
           }),
      seen("values of two keys exchanged", exchange_values),
      seen("a page twice",
           [](ServedCall &call, Call &wrong) {
             call.page_of(wrong, call.sizes().request, call.middle_key() + ServedCall::kPage) =
                 middle_page(call, wrong);
           }),
      seen("a page of the request in front",
           [](ServedCall &call, Call &wrong) {
             middle_page(call, wrong) =
                 call.page_of(wrong, call.sizes().request - 1, call.middle_key());
           }),
      seen("keys of the neighbouring page",
           [](ServedCall &call, Call &wrong) { take_next_page(call, wrong, true); }),
      seen("values of the neighbouring page",
           [](ServedCall &call, Call &wrong) { take_next_page(call, wrong, false); }),
      seen("values of a wrong kv head in one page",
           [](ServedCall &call, Call &wrong) {
             const int first = call.middle_key() / ServedCall::kPage * ServedCall::kPage;
             take_wrong_head(call, wrong, first, first + ServedCall::kPage, false);
           }),
  };
}

std::vector<Mistake> mistakes_of_splits() {
  return {
      seen("one split left out",
           [](ServedCall &call, Call &wrong) {
             call.drop_pages(wrong, call.split_begin(), call.split_begin() + call.sizes().split);
           }),
      seen("a wrong kv head in one split",
           [](ServedCall &call, Call &wrong) {
             take_wrong_head(call, wrong, call.split_begin(),
                             call.split_begin() + call.sizes().split, true);
           }),
      {"a split's slot exchanged with its neighbour",
       [](ServedCall &call) {
         write_merged(call, split_ends(call), {0, 2, 1}, {1, 1, 1});
         return Wrong{};
       }},
      {"a split's slot that its neighbour wrote",
       [](ServedCall &call) {
         write_merged(call, split_ends(call), {0, 0, 2}, {1, 1, 1});
         return Wrong{};
       }},
      {"a split's LSE in the other base",
       [](ServedCall &call) {
         write_merged(call, split_ends(call), {0, 1, 2}, {1, 1.44269504, 1});
         return Wrong{};
       }},
  };
}

std::vector<Mistake> mistakes_of_offsets() {
  return {seen("bit 31 of a page's offset lost", [](ServedCall &call, Call &wrong) {
    middle_page(call, wrong) -= call.sizes().lost_pages;
  })};
}

std::vector<Mistake> mistakes_of_fp8() {
  const auto kv = [](ServedCall &call) { return static_cast<size_t>(call.kv_head()); };
  return {
      seen("k_scale of the neighbouring head",
           [kv](ServedCall &call, Call &wrong) {
             wrong.k_scale[kv(call)] = wrong.k_scale[kv(call) - 1];
           }),
      seen("v_scale of the neighbouring head",
           [kv](ServedCall &call, Call &wrong) {
             wrong.v_scale[kv(call)] = wrong.v_scale[kv(call) - 1];
           }),
      seen("v_scale left out",
           [kv](ServedCall &call, Call &wrong) { wrong.v_scale[kv(call)] = 1.0f; }),
      {"the sign of one element of a value",
       [](ServedCall &call) {
         Call wrong = call.right();
         call.take_spare_page(wrong, call.middle_key());
         auto *value = static_cast<uint8_t *>(call.value(wrong, call.middle_key(), call.kv_head()));
         uint8_t byte = 0;
         call.copy(&byte, value + 42, 1);
         byte ^= 0x80;
         call.copy(value + 42, &byte, 1);
         call.plant(wrong);
         return Wrong{42};
       }},
  };
}

std::vector<Mistake> mistakes_of_features() {
  const auto head = [](ServedCall &call) { return static_cast<size_t>(call.head()); };
  return {
      seen("a sink left out",
           [head](ServedCall &call, Call &wrong) { wrong.sinks[head(call)] = -INFINITY; }),
      seen("a sink counted twice",
           [head](ServedCall &call, Call &wrong) { wrong.sinks[head(call)] += 0.6931472f; }),
      seen("the sink of the neighbouring head",
           [head](ServedCall &call, Call &wrong) {
             wrong.sinks[head(call)] = wrong.sinks[head(call) - 1];
           }),
      seen("a window too long by one", [](ServedCall &, Call &wrong) { ++wrong.p.window; }),
      seen("a window too short by one", [](ServedCall &, Call &wrong) { --wrong.p.window; }),
      seen("the slope of the neighbouring head",
           [head](ServedCall &call, Call &wrong) {
             wrong.slopes[head(call)] = wrong.slopes[head(call) - 1];
           }),
  };
}

std::vector<Mistake> mistakes_of_tokens() {
  return {
      seen("a token sees the next one",
           [](ServedCall &call, Call &wrong) { ++length(call, wrong); }),
      seen("a token does not see itself",
           [](ServedCall &call, Call &wrong) { --length(call, wrong); }),
      {"the row of the token in front",
       [](ServedCall &call) {
         call.plant(call.right(), call.row() - 1, call.head());
         return Wrong{};
       }},
  };
}

std::vector<Mistake> mistakes_of_trees() {
  const auto take = [](ServedCall &call, Call &wrong, int from_request, int from, int to, int end) {
    for (int i = 0; i < end - to; i += ServedCall::kPage)
      call.page_of(wrong, call.sizes().request, to + i) =
          call.page_of(wrong, from_request, from + i);
  };
  const auto fork = [](ServedCall &call) { return call.sizes().trunk + call.sizes().branch; };
  return {
      seen("a node shared with one request too many",
           [=](ServedCall &call, Call &wrong) {
             take(call, wrong, call.sizes().request - call.sizes().fork, call.sizes().trunk,
                  call.sizes().trunk, fork(call));
           }),
      seen("a node that one request does not see",
           [=](ServedCall &call, Call &wrong) {
             call.drop_pages(wrong, call.sizes().trunk, fork(call));
           }),
      seen("the trunk in place of a node",
           [=](ServedCall &call, Call &wrong) {
             take(call, wrong, call.sizes().request, 0, call.sizes().trunk, fork(call));
           }),
      seen("one page of a node is another's",
           [=](ServedCall &call, Call &wrong) {
             const int at = fork(call) - ServedCall::kPage;
             take(call, wrong, call.sizes().request - call.sizes().fork, at, at, fork(call));
           }),
      seen("own keys of the sibling",
           [=](ServedCall &call, Call &wrong) {
             take(call, wrong, call.sizes().request - 1, fork(call), fork(call),
                  call.length() / ServedCall::kPage * ServedCall::kPage);
           }),
      {"a node's slot exchanged with the trunk's",
       [=](ServedCall &call) {
         write_merged(call, {call.sizes().trunk, fork(call), call.length()}, {1, 0, 2}, {1, 1, 1});
         return Wrong{};
       }},
      {"a node's LSE in the other base",
       [=](ServedCall &call) {
         write_merged(call, {call.sizes().trunk, fork(call), call.length()}, {0, 1, 2},
                      {1, 1.44269504, 1});
         return Wrong{};
       }},
  };
}

} // namespace assay::planted
