// SPDX-License-Identifier: Apache-2.0
// The oracle's outward-rounded numbers, linked from the installed tree.
#include <assay/oracle/exact/interval.h>

#include <cstdio>

int main() {
  const auto ln2 = assay::oracle::Interval::ln2(100);
  std::printf("ln 2 = %.17g, certain to %.3g\n", ln2.middle(), ln2.width());
  return ln2.certainly_above(0.6931471805599452) && ln2.certainly_at_most(0.6931471805599454) ? 0
                                                                                              : 1;
}
