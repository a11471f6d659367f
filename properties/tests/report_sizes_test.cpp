// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/report/html.h"
#include "properties/report/terminal.h"
#include "properties/tests/report_documents.h"

namespace assay::report {
namespace {

TEST(Report, SizesAreThoseThatTenDrawsReached) {
  json d = document();
  EXPECT_EQ(html(d).find("<h2>Sizes</h2>"), std::string::npos);
  EXPECT_EQ(terminal(d, {}).find("largest size"), std::string::npos);
  d["kernels"].push_back(d["kernels"][0]);
  d["kernels"][0]["reached"] = {{"batch", 256}, {"a<b>", 3}};
  d["kernels"][1]["name"] = "other";
  d["kernels"][1]["reached"] = {{"batch", 9}};
  EXPECT_NE(terminal(d, {}).find("\nlargest size that ten judged draws reached:\n"
                                 "k<1>                     a<b> 3, batch 256\n"
                                 "other                    batch 9\n"),
            std::string::npos);
  EXPECT_NE(html(d).find("<th>kernel</th><th>a&lt;b&gt;</th><th>batch</th>"), std::string::npos);
  EXPECT_NE(html(d).find("<td>other</td><td>-</td><td>9</td>"), std::string::npos);
}

} // namespace
} // namespace assay::report
