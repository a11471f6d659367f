// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/errors.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/escape.h"

namespace assay::report {
namespace {

void add(std::vector<uint64_t> &sum, const std::vector<uint64_t> &more) {
  sum.resize(std::max(sum.size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i)
    sum[i] += more[i];
}

std::vector<uint64_t> sum_of(const std::vector<const json *> &documents, const std::string &kernel,
                             const std::string &output) {
  std::vector<uint64_t> out;
  for (const json *document : documents)
    add(out, error_cases(*document, kernel, output));
  return out;
}

std::vector<std::string> kernels_of(const std::vector<const json *> &documents) {
  std::vector<std::string> out;
  for (const json *document : documents)
    for (const json &kernel : document->at("kernels"))
      if (std::string name = text_of(kernel, "name");
          std::find(out.begin(), out.end(), name) == out.end())
        out.push_back(std::move(name));
  return out;
}

constexpr double kBar = 12, kHeight = 80; // sizes of a picture, in its own units

/// Where a bar ends, from the top.
double top_of(uint64_t count, uint64_t most) {
  return kHeight *
         (1 - static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(most, 1)));
}

std::string bars(const std::vector<uint64_t> &cases, uint64_t most) {
  std::string out;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i] == 0) continue;
    const bool over = i + 1 == cases.size();
    const double top = std::min(top_of(cases[i], most), kHeight - 1); // one case is seen too
    const auto bins = static_cast<double>(cases.size() - 1);
    const std::string range = over ? "beyond 1"
                                   : fmt::format("{:.2f} to {:.2f}", static_cast<double>(i) / bins,
                                                 static_cast<double>(i + 1) / bins);
    out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\">"
                       "<title>{}: {} cases</title></rect>",
                       over ? "over" : "in", static_cast<double>(i) * kBar + 1, top, kBar - 2,
                       kHeight - top, range, cases[i]);
  }
  return out;
}

std::string outline(const std::vector<uint64_t> &cases, uint64_t most) {
  if (cases.empty()) return "";
  std::string points;
  for (size_t i = 0; i < cases.size(); ++i)
    for (const size_t side : {i, i + 1})
      points += fmt::format("{},{:.1f} ", static_cast<double>(side) * kBar, top_of(cases[i], most));
  return fmt::format("<polyline points=\"{}\"><title>base</title></polyline>", points);
}

} // namespace

std::vector<uint64_t> error_cases(const json &document, const std::string &kernel,
                                  const std::string &output) {
  std::vector<uint64_t> out;
  for (const json &run : document.at("runs"))
    if (text_of(run, "kernel") == kernel && run.contains("errors")) // an older assay has none
      add(out, run.at("errors").at(output).get<std::vector<uint64_t>>());
  const bool judged = std::any_of(out.begin(), out.end(), [](uint64_t n) { return n > 0; });
  return judged ? out : std::vector<uint64_t>{};
}

std::string error_histogram(const std::string &title, const std::vector<uint64_t> &cases,
                            const std::vector<uint64_t> &base) {
  if (cases.empty()) return "";
  uint64_t most = 0;
  for (const std::vector<uint64_t> *side : {&cases, &base})
    for (const uint64_t count : *side)
      most = std::max(most, count);
  const uint64_t all = std::accumulate(cases.begin(), cases.end(), uint64_t{0});
  const double width = kBar * static_cast<double>(cases.size()), one = width - kBar;
  std::string out = fmt::format(
      "<figure><svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}: {3} cases\">{4}{5}"
      "<line x1=\"{6}\" y1=\"0\" x2=\"{6}\" y2=\"{7}\"/><path d=\"M0 {7}H{0}\"/>"
      "<text x=\"0\" y=\"{8}\">0</text><text x=\"{9}\" y=\"{8}\" text-anchor=\"middle\">0.5</text>"
      "<text x=\"{6}\" y=\"{8}\" text-anchor=\"end\">1</text></svg>",
      width, kHeight + 16, markup(title), all, bars(cases, most), outline(base, most), one, kHeight,
      kHeight + 13, one / 2);
  return out + fmt::format("<figcaption>{}, {} cases</figcaption></figure>", markup(title), all);
}

std::string html_errors(const std::vector<const json *> &documents,
                        const std::vector<const json *> &base) {
  std::string out;
  for (const std::string &kernel : kernels_of(documents)) {
    std::string pictures;
    for (const auto &[output, name] : {std::pair{"o", "O"}, std::pair{"lse", "LSE"}})
      pictures += error_histogram(kernel + ", " + name, sum_of(documents, kernel, output),
                                  sum_of(base, kernel, output));
    if (!pictures.empty())
      out += fmt::format("<div class=\"errors\" data-kernel=\"{}\">{}</div>\n", markup(kernel),
                         pictures);
  }
  if (out.empty()) return "";
  return fmt::format(
             "<h2>Errors</h2>\n<p class=\"soft\">Cases by their worst error over what is "
             "allowed{}. A 16-bit O is rounded by up to half a unit, which is nearly all that "
             "is allowed: the LSE shows more.</p>\n",
             base.empty() ? "" : "; the line is base") +
         out;
}

} // namespace assay::report
