// SPDX-License-Identifier: Apache-2.0
// The reports of one document: what each must hold, and hostile words that must stay words.
#include <algorithm>
#include <cctype>
#include <sstream>
#include <stack>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"
#include "properties/tools/report/html.h"
#include "properties/tools/report/junit.h"
#include "properties/tools/report/markdown.h"
#include "properties/tools/report/sarif.h"
#include "properties/tools/report/terminal.h"
#include "properties/tools/report/tests/report_documents.h"

namespace assay::report {
namespace {

/// Text without what stands between <tag> and </tag>, the tags included.
std::string without(std::string text, const std::string &tag) {
  for (size_t at; (at = text.find("<" + tag + ">")) != text.npos;) {
    const size_t end = text.find("</" + tag + ">", at);
    if (end == text.npos) return text; // it stays open, which unbalanced() says
    text.erase(at, end + tag.size() + 3 - at);
  }
  return text;
}

/// Where the tag that starts at `at` ends: its '>' outside quotes.
size_t tag_end(const std::string &text, size_t at) {
  for (bool quoted = false; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (text[at] == '>' && !quoted) return at;
  }
  return text.npos;
}

/// Tags of HTML or XML closed in order; returns what is wrong. `open`: need no end.
std::string unbalanced(const std::string &text, const std::string &open) {
  std::stack<std::string> stack;
  const std::string rest = without(without(text, "style"), "script"); // no markup inside
  size_t at = 0;
  for (size_t mark; (mark = rest.find_first_of("<>", at)) != rest.npos;) {
    const size_t end = rest[mark] == '<' ? tag_end(rest, mark) : rest.npos;
    if (end == rest.npos) return "a bare < or >";
    at = end + 1;
    std::string tag = rest.substr(mark + 1, end - mark - 1);
    if (tag.starts_with('!') || tag.starts_with('?')) continue;
    const bool closes = tag.starts_with('/');
    if (closes) tag.erase(0, 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /"));
    if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) return "a bare <";
    if (closes) {
      if (stack.empty() || stack.top() != name) return "stray </" + name + ">";
      stack.pop();
    } else if (!tag.ends_with('/') && open.find(" " + name + " ") == open.npos) {
      stack.push(name);
    }
  }
  return stack.empty() ? "" : "<" + stack.top() + "> stays open";
}

/// Markdown without its fences and code spans.
std::string outside_code(const std::string &text) {
  std::string out, fence;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t ticks = std::min(line.find_first_not_of('`'), line.size());
    if (!fence.empty()) {
      if (line == fence) fence.clear();
    } else if (ticks >= 3) {
      fence = line.substr(0, ticks);
    } else {
      bool code = false;
      for (const char c : line)
        if (c == '`')
          code = !code;
        else if (!code)
          out += c;
      out += '\n';
    }
  }
  return out;
}

TEST(Report, UnbalancedSeesWhatIsWrong) {
  EXPECT_EQ(unbalanced("<!DOCTYPE html><p a=\"x>y\">1<br>2<i/></p>", " br "), "");
  EXPECT_EQ(unbalanced("<p><b></p></b>", ""), "stray </p>");
  EXPECT_EQ(unbalanced("<p>", ""), "<p> stays open");
  EXPECT_EQ(unbalanced("<p>1 > 0</p>", ""), "a bare < or >");
  EXPECT_EQ(unbalanced("<p>0 < 1</p>", ""), "a bare <");
  EXPECT_EQ(unbalanced("<style>a > b", ""), "a bare < or >");
}

int count(const std::string &text, const std::string &part) {
  int n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

TEST(Report, JunitHasATestForEachProperty) {
  const std::string xml = junit(document());
  EXPECT_EQ(unbalanced(xml, ""), "") << xml;
  EXPECT_EQ(count(xml, "<testcase "), 6);
  EXPECT_EQ(count(xml, "<failure "), 2); // both findings, not only the group's first
  EXPECT_EQ(count(xml, "<error "), 1);   // key_duplication misses a class
  EXPECT_EQ(count(xml, "<skipped "), 2); // window_hides has nothing to say, v_affine did not run
  EXPECT_NE(xml.find("<testsuite name=\"k&lt;1&gt;\" tests=\"6\" failures=\"2\" errors=\"1\" "
                     "skipped=\"2\""),
            xml.npos)
      << xml;
  EXPECT_NE(xml.find("assay-case 1"), xml.npos);
  EXPECT_EQ(gaps(document())[0].text, "1 of 6 properties not run");
  EXPECT_NE(xml.find("seen by: within_budget, run_to_run"), xml.npos);
}

TEST(Report, JunitCountsKeptFindings) {
  json d = passing();
  d["exit"] = 1;
  d["replayed"]["results"] = {{{"file", "a.case"},
                               {"kernel", "k"},
                               {"property", "p"},
                               {"verdict", "FAIL"},
                               {"message", "m"}},
                              {{"file", "b.case"},
                               {"kernel", "k"},
                               {"property", "p"},
                               {"verdict", "open"},
                               {"message", "m"}}};
  d["replayed"]["ledger"] = {
      {{"file", "c.case"}, {"status", "open"}, {"issue", ""}, {"unexpected_pass", true}}};
  const std::string xml = junit(d);
  EXPECT_NE(
      xml.find("name=\"kept findings\" tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"1\""),
      xml.npos)
      << xml;
  EXPECT_EQ(json::parse(sarif(d))["runs"][0]["results"].size(), 2u);
  EXPECT_NE(markdown(d).find("2 findings"), std::string::npos);
  EXPECT_NE(html(d).find("set &#39;status = fixed&#39;"), std::string::npos);
}

TEST(Report, SarifHasOneResultForEachGroup) {
  const json log = json::parse(sarif(document()));
  EXPECT_EQ(log["version"], "2.1.0");
  const json &one = log["runs"][0];
  EXPECT_EQ(one["tool"]["driver"]["name"], "assay");
  ASSERT_EQ(one["results"].size(), 1u);
  const json &result = one["results"][0];
  EXPECT_EQ(result["ruleId"], "within_budget");
  EXPECT_EQ(result["level"], "error");
  EXPECT_EQ(result["partialFingerprints"]["assayCause/v1"], "0123456789abcdef");
  const json &place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "kernels/a.cuh");
  EXPECT_EQ(place["region"]["startLine"], 31);
  EXPECT_EQ(result["properties"]["alsoSeenBy"], json({"run_to_run"}));
  std::vector<std::string> rules;
  for (const json &rule : one["tool"]["driver"]["rules"]) {
    EXPECT_TRUE(rule["shortDescription"]["text"].is_string());
    rules.push_back(rule["id"]);
  }
  for (const json &r : one["results"])
    EXPECT_NE(std::find(rules.begin(), rules.end(), r["ruleId"].get<std::string>()), rules.end());
  EXPECT_EQ(one["invocations"][0]["exitCode"], 1);
  EXPECT_TRUE(one["invocations"][0]["executionSuccessful"]);
  EXPECT_EQ(one["invocations"][0]["toolExecutionNotifications"].size(), 2u);
  json unplaced = document();
  unplaced["found"][0]["cause"].erase("source");
  EXPECT_EQ(json::parse(sarif(unplaced))["runs"][0]["results"][0]["locations"][0]
                                        ["physicalLocation"]["artifactLocation"]["uri"],
            "findings/a%20b.case");
}

TEST(Report, MarkdownKeepsForeignWordsInCodeSpans) {
  const std::string text = markdown(document());
  EXPECT_EQ(
      text.rfind("**assay: FAIL**, 1 finding in 120 cases of 1 kernel: target simt, seed 7", 0), 0u)
      << text;
  // Outside of code spans and fences nothing of the message is left.
  const std::string alive = outside_code(text);
  for (const char *part : {"alert", "@team", "#1", "](http"})
    EXPECT_EQ(alive.find(part), alive.npos) << part << "\n" << alive;
  // A pipe in a cell is a cell more.
  const size_t at = text.find("\n| `k<1>` | `within");
  ASSERT_NE(at, text.npos) << text;
  const std::string row = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  EXPECT_EQ(count(row, "|") - count(row, "\\|"), 6) << row;
  EXPECT_NE(text.find("| 1 of 3 | `window` | `fp8` |"), text.npos) << text;
  EXPECT_LT(text.size(), 65536u);
  EXPECT_EQ(markdown(passing()).rfind("**assay: PASS**, 0 findings", 0), 0u);
}

TEST(Report, MarkdownOfManyFindingsStaysAComment) {
  json d = document();
  for (size_t i = 1; i < 500; ++i) {
    d["groups"].push_back(d["groups"][0]);
    d["found"][0]["message"] = std::string(200, '|');
  }
  const std::string text = markdown(d);
  EXPECT_LT(text.size(), 65536u);
  EXPECT_NE(text.find("and 480 more"), text.npos);
}

TEST(Report, HtmlIsWellFormedAndEscapesEverything) {
  const std::string page = html(document());
  EXPECT_EQ(unbalanced(page, " meta link input "), "");
  EXPECT_EQ(count(page, "<script>"), 1);
  EXPECT_EQ(page.find("alert(1)</script>"), page.npos);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;script&gt;alert(1)"), page.npos);
  // Nothing is fetched: no address but the empty icon.
  EXPECT_EQ(count(page, "src="), 0);
  EXPECT_EQ(count(page, "href="), 1 + 1); // the icon, the table's link to finding 1
  EXPECT_EQ(count(page, "url("), 0);
  EXPECT_EQ(count(page, "@import"), 0);
  EXPECT_NE(page.find("<header class=\"verdict fail\">\n<h1>FAIL</h1>"), page.npos);
  EXPECT_NE(page.find("id=\"finding-1\" data-kernel=\"k&lt;1&gt;\""), page.npos);
  EXPECT_NE(html(passing()).find("<h1>PASS</h1>"), std::string::npos);
  EXPECT_EQ(html(passing()).find("<h2>Findings"), std::string::npos);
}

TEST(Report, EveryRenderingSaysTheSameOfOneState) {
  json d = document();
  d["exit"] = 4;
  d["runs"] = json::array(
      {run("key_duplication", {{"missing", {"fp8"}}, {"undecided", 2}}),
       run("constant_v", {{"hollow", true}, {"discarded", 9}, {"last_discard", "bf16 only"}}),
       run("v_affine", {{"error", "out of words"}})});
  for (const std::string &text :
       {terminal(d, {}), terminal(d, {.quiet = true}), markdown(d), junit(d), sarif(d), html(d)}) {
    EXPECT_NE(text.find("fewer than two cases of class fp8"), text.npos) << text;
    EXPECT_NE(text.find("no case was decided (9 discarded; the last: bf16 only)"), text.npos)
        << text;
    EXPECT_NE(text.find("out of words"), text.npos) << text;
  }
  EXPECT_NE(terminal(d, {}).find("UNDECIDED k<1> key_duplication: 2 undecided cases\n"),
            std::string::npos);
  EXPECT_NE(terminal(d, {}).find("\nINCOMPLETE: 120 cases, "), std::string::npos);
  EXPECT_NE(html(d).find("<h1>INCOMPLETE</h1>"), std::string::npos);
  d["ended"] = "interrupted";
  EXPECT_NE(terminal(d, {}).find("\nINTERRUPTED: 0 of 3 properties not run"), std::string::npos);
}

// A kernel that refused every call is one line, with its own words; a harness that failed is more.
TEST(Report, AKernelThatTakesNothingIsOneLine) {
  json d = document();
  d["exit"] = 4;
  d["runs"] = json::array();
  for (const char *name : {"constant_v", "v_affine", "key_duplication"})
    d["runs"].push_back(
        run(name, {{"hollow", true}, {"discarded", 300}, {"last_discard", "40 heads only"}}));
  d["runs"][1]["last_discard"] = "one head";
  d["runs"].push_back(run("run_to_run", {{"hollow", true}, {"error", "out of words"}}));
  d["kernels"][0]["gaps"] = {kNothingDecided};
  for (const std::string &text : {terminal(d, {}), markdown(d)}) {
    EXPECT_NE(
        text.find("no property decided a case; the last call of 2 of them: 40 heads only (--only "
                  "names a shape"),
        text.npos)
        << text;
    EXPECT_NE(text.find("out of words"), text.npos) << text;
    EXPECT_EQ(text.find("300 discarded"), text.npos) << text;
  }
  EXPECT_NE(junit(d).find("300 discarded"), std::string::npos);
  d["kernels"][0]["gaps"] = json::array();
  EXPECT_NE(terminal(d, {}).find("300 discarded"), std::string::npos);
}

TEST(Report, CoverageIsCoveredOutsideOrMissing) {
  const Coverage c = coverage(document(), "k<1>");
  ASSERT_EQ(c.rows.size(), 3u);
  EXPECT_EQ(c.properties.size(), 6u);
  EXPECT_EQ(c.rows[0].all, Cell::kCovered);
  EXPECT_EQ(c.rows[0].cases[0], 30);
  EXPECT_EQ(c.names(Cell::kOutside), std::vector<std::string>{"window"});
  EXPECT_EQ(c.names(Cell::kMissing), std::vector<std::string>{"fp8"});
  const std::string page = html(document());
  EXPECT_NE(page.find("fp8, key_duplication: missing"), page.npos);
  EXPECT_NE(page.find("1 of 3 classes covered, 1 outside its envelope (window)"), page.npos);
}

TEST(Escape, LeavesNothingThatAnotherLanguageReads) {
  EXPECT_EQ(markup("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(markup(std::string("\0\x1b\n\t", 4)), "\xef\xbf\xbd\xef\xbf\xbd\n\t");
  EXPECT_EQ(markup("\xef\xbf\xbf!"), "\xef\xbf\xbd!"); // XML has no U+FFFF
  EXPECT_EQ(markup("a\xe2\x80\xae"
                   "b\xe2\x81\xa6"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd"); // turns what follows
  EXPECT_EQ(markup("\xe2\x80\x93\xe2\x80\xaf"), "\xe2\x80\x93\xe2\x80\xaf");
  EXPECT_EQ(code_span("a`b|c\nd"), "`a'b\\|c d`");
  EXPECT_EQ(code_span(""), "");
  EXPECT_EQ(code_block("x\n````\n"), "`````\nx\n````\n`````\n");
  EXPECT_EQ(file_uri("a b/#c.case"), "a%20b/%23c.case");
  EXPECT_EQ(file_uri("/tmp/\xc3\xa4"), "file:///tmp/%C3%A4");
}

} // namespace
} // namespace assay::report
