// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/terminal.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

/// A space at which no line breaks.
constexpr char kHard = '\x01';

/// Lines of at most `columns`, the others after the first indented; none breaks in a word. 0: one.
std::string wrapped(const std::string &text, size_t columns) {
  std::string out, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (columns > 0 && !line.empty() && line.size() + 1 + word.size() > columns) {
      out += line + "\n";
      line = "   ";
    }
    line += (line.empty() ? "" : " ") + word;
  }
  std::replace(line.begin(), line.end(), kHard, ' ');
  std::replace(out.begin(), out.end(), kHard, ' ');
  return out + line + "\n";
}

class Terminal {
public:
  Terminal(const json &document, const TerminalLook &look) : document_(document), look_(look) {}

  std::string all() const {
    std::string out = look_.quiet ? "" : table() + sizes() + silent_about_nan() + envelopes();
    for (const json &group : document_.at("groups"))
      out += finding(group);
    out += text_of(document_, "ended").empty() ? gap_lines() : end();
    return look_.quiet ? out : out + verdict();
  }

private:
  std::string colour(const char *code, const std::string &text) const {
    return look_.colours ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }
  std::string red(const std::string &text) const { return colour("31", text); }

  /// A paragraph of a finding, indented by two spaces.
  std::string paragraph(const std::string &text) const {
    return "  " + wrapped(text, look_.columns > 2 ? look_.columns - 2 : 0);
  }
  /// Its first line may break; what a worker printed follows as it is.
  std::string first_lines(const std::string &text) const {
    const size_t end = text.find('\n');
    return wrapped(text.substr(0, end), look_.columns) +
           (end == text.npos ? "" : text.substr(end + 1) + "\n");
  }

  template <class... Cells>
  static std::string row(const std::string &kernel, const Cells &...cells) {
    return fmt::format("{:<24} {:>7} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n", kernel,
                       cells...);
  }

  std::string table() const {
    std::string out =
        row("kernel", "cases", "failing", "undecided", "T0", "T1", "T2", "LSE", "budget");
    for (const json &k : document_.at("kernels")) {
      const auto worst = [&](const char *name) {
        return ratio_text(k.at("worst").at(name).get<double>());
      };
      const double budget = k.at("median_budget").get<double>();
      out += row(text_of(k, "name"), text_of(k, "cases"), text_of(k, "findings"),
                 text_of(k, "undecided"), worst("ratio_t0"), worst("ratio_t1"), worst("ratio_t2"),
                 worst("ratio_lse"), budget > 0 ? fmt::format("{:.1e}", budget) : "-");
    }
    return out;
  }

  /// Where kernels are few, each size has a line, with why no draw was larger.
  std::string sizes() const {
    constexpr size_t kFew = 3;
    const json &kernels = document_.at("kernels");
    if (kernels.size() <= kFew) return sizes_in_lines();
    const Reached sizes = reached(document_);
    if (sizes.rows.empty()) return "";
    std::string out = "\nlargest size that ten judged draws reached:\n";
    for (const Reached::Row &row : sizes.rows) {
      std::vector<std::string> words;
      for (size_t i = 0; i < sizes.fields.size(); ++i)
        if (row.sizes[i] != "-")
          words.push_back(fmt::format("{} {}", sizes.fields[i], row.sizes[i]));
      out += fmt::format("{:<24} {}\n", row.kernel, joined(words));
    }
    return out;
  }

  std::string sizes_in_lines() const {
    std::string out;
    for (const json &k : document_.at("kernels")) {
      const json reached = k.value("reached", json::object());
      if (reached.empty()) continue;
      out += fmt::format("\n{:<24} {:>9} {:>9}  why no draw has more\n",
                         text_of(k, "name") + ", sizes", "ten cases", "one case");
      for (const auto &[name, size] : reached.items())
        out += fmt::format("  {:<22} {:>9} {:>9}  {}\n", name,
                           size.at("ten") == 0 ? "-" : text_of(size, "ten"), text_of(size, "most"),
                           text_of(size, "end"));
    }
    return out;
  }

  std::string silent_about_nan() const {
    std::vector<std::string> kernels;
    for (const json &k : document_.at("kernels")) {
      std::vector<std::string> silent{"scores", "values"};
      for (const json &promised : k.at("nan_contract"))
        std::erase(silent, promised.get<std::string>());
      if (!silent.empty())
        kernels.push_back(fmt::format("{} ({})", text_of(k, "name"), joined(silent)));
    }
    return kernels.empty() ? ""
                           : fmt::format("NaN need not reach the outputs of {}\n", joined(kernels));
  }

  /// Where narrow kernels were checked.
  std::string envelopes() const {
    std::string out;
    for (const json &k : document_.at("kernels")) {
      if (k.at("envelope").empty()) continue;
      const std::string name = text_of(k, "name");
      out += fmt::format("\n{} was checked where it runs:\n", name);
      for (const json &line : k.at("envelope_text"))
        out += fmt::format("  {}\n", line.get<std::string>());
      if (const auto classes = k.at("not_covered").get<std::vector<std::string>>();
          !classes.empty())
        out += fmt::format("  not covered    {}\n", joined(classes));
      for (const json &run : document_.at("runs"))
        if (text_of(run, "kernel") == name && run.at("started").get<bool>() && run.at("cases") == 0)
          out += fmt::format("  nothing to say {} ({})\n", text_of(run, "property"),
                             text_of(run, "last_discard"));
    }
    return out;
  }

  std::string finding(const json &group) const {
    const json &f = sharpest(document_, group);
    const std::string word = "FINDING";
    const std::string head = first_lines(fmt::format(
        "{} {} {}: {}", word, text_of(f, "kernel"), text_of(f, "property"), text_of(f, "message")));
    std::string out = "\n" + red(word) + head.substr(word.size());
    if (const std::string far = text_of(f, "how_far"); !far.empty())
      out += fmt::format("  {}\n", far);
    out += paragraph("cause: " + text_of(f.at("cause"), "text") + " [" +
                     text_of(group, "fingerprint") + "]");
    if (const std::string fields = differs(f); !fields.empty())
      out += paragraph("differs from the simplest case in: " + fields);
    if (const std::string line = text_of(f, "reproduce"); !line.empty())
      out += fmt::format("  reproduce: {}\n{}", line, explain(line));
    if (text_of(f, "drawn_by") != text_of(f, "reproduce"))
      out += fmt::format("  drawn by:  {}\n", text_of(f, "drawn_by"));
    if (const auto others = also_seen_by(group); !others.empty())
      out += paragraph("also seen by: " + joined(others));
    out += fmt::format("  {} of {} cases fail; {}\n", text_of(f, "failing_cases"),
                       text_of(f, "cases"), how_small(f));
    for (const json &member : document_.at("found"))
      if (member.at("group") == f.at("group") && member.contains("unwritten"))
        out += fmt::format("  {}; the case:\n{}", text_of(member, "unwritten"),
                           text_of(member, "case"));
    return out;
  }

  /// The fields in which a shrunk case differs from the simplest; only the first of many are shown.
  static std::string differs(const json &f) {
    constexpr size_t kShown = 12;
    if (!f.contains("differs")) return "";
    auto fields = f.at("differs").get<std::vector<std::string>>();
    const size_t more = fields.size() - std::min(fields.size(), kShown);
    if (more > 0) fields.resize(kShown);
    for (std::string &field : fields)
      std::replace(field.begin(), field.end(), ' ', kHard);
    return joined(fields) + (more > 0 ? fmt::format(" and {} more", more) : "");
  }

  /// The command that says the rest, where a case can be replayed.
  static std::string explain(const std::string &reproduce) {
    const std::string replay = "assay replay ";
    if (!reproduce.starts_with(replay)) return "";
    return fmt::format("  explain:   assay explain {}\n", reproduce.substr(replay.size()));
  }

  static std::string how_small(const json &f) {
    const json &shrunk = f.at("shrunk");
    if (shrunk.at("tried") == 0) return "not shrunk";
    return fmt::format("shrunk in {} steps ({} tried{})", text_of(shrunk, "steps"),
                       text_of(shrunk, "tried"),
                       shrunk.at("exhausted").get<bool>() ? ", budget spent" : "");
  }

  /// What the run does not prove; kept cases have been named when they were replayed.
  std::string gap_lines() const {
    std::string out;
    for (const Gap &gap : gaps_in_short(document_))
      if (!gap.kept)
        out += fmt::format("{} {}{}{}: {}\n", red(gap.undecided ? "UNDECIDED" : "INCOMPLETE"),
                           gap.kernel, gap.property.empty() ? "" : " ", gap.property, gap.text);
    return out;
  }

  /// Why a run that was ended early ended, and what it left out.
  std::string end() const {
    const json &runs = document_.at("runs");
    const auto unstarted = std::count_if(
        runs.begin(), runs.end(), [](const json &run) { return !run.at("started").get<bool>(); });
    const bool interrupted = text_of(document_, "ended") == "interrupted";
    return fmt::format("\n{}: {} of {} properties not run, those in progress cut short\n",
                       interrupted ? red("INTERRUPTED") : "ENDED at the first finding", unstarted,
                       runs.size());
  }

  uint64_t sum(const char *list, const char *field) const {
    const json &entries = document_.at(list);
    return std::accumulate(
        entries.begin(), entries.end(), uint64_t{0},
        [&](uint64_t n, const json &e) { return n + e.at(field).get<uint64_t>(); });
  }

  std::string verdict() const {
    const size_t findings = document_.at("groups").size() + kept_troubles(document_).size();
    const bool pass = document_.at("exit") == 0;
    std::string out;
    if (const uint64_t outputs = sum("kernels", "outputs"); outputs > 0)
      out = fmt::format("\noracle: {} outputs judged, {} rows certified in interval arithmetic",
                        outputs, sum("kernels", "certified_rows"));
    if (const std::string line = identity_line(document_); !line.empty())
      out += "\n" + wrapped(line, look_.columns);
    return out + fmt::format("\n{}: {} cases, {} failing, {} finding{}, {} undecided, target {}, "
                             "seed {}{}, {:.1f} s\n",
                             pass ? colour("32", "pass") : red(verdict_word(document_)),
                             text_of(document_, "cases"), sum("runs", "findings"), findings,
                             findings == 1 ? "" : "s", text_of(document_, "undecided"),
                             text_of(document_, "target"), text_of(document_, "seed"),
                             assumed_text(document_), document_.at("seconds").get<double>());
  }

  const json &document_;
  const TerminalLook &look_;
};

} // namespace

std::string terminal(const json &document, const TerminalLook &look) {
  return Terminal(document, look).all();
}

} // namespace assay::report
