// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/html.h"
#include "properties/tools/report/terminal.h"
#include "properties/tools/report/tests/report_documents.h"

namespace assay::report {
namespace {

TEST(Report, SizesAreThoseThatTenDrawsReached) {
  json d = document();
  EXPECT_EQ(html(d).find("<h2>Sizes</h2>"), std::string::npos);
  EXPECT_EQ(terminal(d, {}).find("largest size"), std::string::npos);
  const auto size = [](int ten, int most) {
    return json{{"ten", ten}, {"most", most}, {"end", "no case holds more"}};
  };
  d["kernels"][0]["reached"] = {{"batch", size(256, 300)}, {"a<b>", size(3, 3)}, {"c", size(0, 9)}};
  EXPECT_NE(
      terminal(d, {}).find("\nk<1>, sizes              ten cases  one case  why no draw has more\n"
                           "  a<b>                           3         3  no case holds more\n"
                           "  batch                        256       300  no case holds more\n"
                           "  c                              -         9  no case holds more\n"),
      std::string::npos)
      << terminal(d, {});
  // Where kernels are many a line each says what ten draws reached.
  for (const char *name : {"other", "third", "fourth"}) {
    d["kernels"].push_back(d["kernels"][0]);
    d["kernels"].back()["name"] = name;
    d["kernels"].back()["reached"] = {{"batch", size(9, 9)}};
  }
  EXPECT_NE(terminal(d, {}).find("\nlargest size that ten judged draws reached:\n"
                                 "k<1>                     a<b> 3, batch 256\n"
                                 "other                    batch 9\n"),
            std::string::npos)
      << terminal(d, {});
  EXPECT_NE(html(d).find("<th>kernel</th><th>a&lt;b&gt;</th><th>batch</th>"), std::string::npos);
  EXPECT_NE(html(d).find("<td>other</td><td>-</td><td>9</td>"), std::string::npos);
}

} // namespace
} // namespace assay::report
