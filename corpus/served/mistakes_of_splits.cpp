// SPDX-License-Identifier: Apache-2.0
#include "corpus/served/mistakes.h"

#include <cmath>
#include <stdexcept>

namespace assay::served {
namespace {

/// In [begin, end), the kv head in front.
void take_wrong_head(ServedCall &call, Call &wrong, int begin, int end) {
  Call right = call.right();
  const int own = call.kv_head();
  for (int position = begin; position < end; ++position) {
    if (position % kPage == 0) call.take_spare_page(wrong, position);
    call.copy(call.key(wrong, position, own), call.key(right, position, own - 1),
              call.token_bytes());
    call.copy(call.value(wrong, position, own), call.value(right, position, own - 1),
              call.token_bytes());
  }
}

/// Where the parts of a row end: the middle key's split is the second of three.
std::vector<int> split_ends(const ServedCall &call) {
  return {call.split_begin(), call.split_begin() + call.sizes().split, call.length()};
}

using Parts = std::vector<std::vector<double>>;

/// O and LSE of each part of the row's keys, exact.
Parts parts_of(ServedCall &call, const std::vector<int> &ends) {
  Parts parts;
  int begin = 0;
  for (const int end : ends) {
    Call part = call.right();
    if (end < call.length()) call.length_of(part) = end;
    call.drop_pages(part, 0, begin);
    parts.push_back(call.exact(part));
    begin = end;
  }
  return parts;
}

/// O of part i is that of `slot[i]`, and its weight that of an LSE times `lse_factor[i]`.
std::vector<double> merged(const Parts &parts, const std::vector<size_t> &slot,
                           const std::vector<double> &lse_factor) {
  std::vector<double> row(kDim + 1, 0.0);
  double sum = 0.0, mass = 0.0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double weight = std::exp(parts[i].back() * lse_factor[i] - parts[0].back());
    sum += weight;
    mass += std::exp(parts[i].back() - parts[0].back());
    for (size_t dim = 0; dim < kDim; ++dim)
      row[dim] += weight * parts[slot[i]][dim];
  }
  for (double &x : row)
    x /= sum;
  row.back() = parts[0].back() + std::log(mass);
  return row;
}

/// Parts that are merged wrong; merged right they are inside.
Mistake of_merge(const std::string &name, std::function<std::vector<int>(const ServedCall &)> ends,
                 std::vector<size_t> slot, std::vector<double> lse_factor) {
  return {name, [=](ServedCall &call) {
            const Parts parts = parts_of(call, ends(call));
            call.write_exact(merged(parts, {0, 1, 2}, {1, 1, 1}));
            if (!call.open_of_first().empty())
              throw std::logic_error("parts that are merged right are not inside");
            call.write_exact(merged(parts, slot, lse_factor));
            return Wrong{};
          }};
}

constexpr double kOtherBase = 1.44269504;

} // namespace

std::vector<Mistake> mistakes_of_splits() {
  return {
      seen("one split left out",
           [](ServedCall &call, Call &wrong) {
             call.drop_pages(wrong, call.split_begin(), call.split_begin() + call.sizes().split);
           }),
      seen("a wrong kv head in one split",
           [](ServedCall &call, Call &wrong) {
             take_wrong_head(call, wrong, call.split_begin(),
                             call.split_begin() + call.sizes().split);
           }),
      of_merge("a split's slot exchanged with its neighbour", split_ends, {0, 2, 1}, {1, 1, 1}),
      of_merge("a split's slot that its neighbour wrote", split_ends, {0, 0, 2}, {1, 1, 1}),
      of_merge("a split's LSE in the other base", split_ends, {0, 1, 2}, {1, kOtherBase, 1}),
  };
}

std::vector<Mistake> mistakes_of_trees() {
  const auto take = [](ServedCall &call, Call &wrong, int from_request, int from, int to, int end) {
    for (int i = 0; i < end - to; i += kPage)
      wrong.page_of(call.sizes().request, to + i) = wrong.page_of(from_request, from + i);
  };
  const auto fork = [](const ServedCall &call) { return call.sizes().trunk + call.sizes().branch; };
  const auto nodes = [fork](const ServedCall &call) {
    return std::vector<int>{call.sizes().trunk, fork(call), call.length()};
  };
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
             const int at = fork(call) - kPage;
             take(call, wrong, call.sizes().request - call.sizes().fork, at, at, fork(call));
           }),
      seen("own keys of the sibling",
           [=](ServedCall &call, Call &wrong) {
             take(call, wrong, call.sizes().request - 1, fork(call), fork(call),
                  call.length() / kPage * kPage);
           }),
      of_merge("a node's slot exchanged with the trunk's", nodes, {1, 0, 2}, {1, 1, 1}),
      of_merge("a node's LSE in the other base", nodes, {0, 1, 2}, {1, kOtherBase, 1}),
  };
}

} // namespace assay::served
