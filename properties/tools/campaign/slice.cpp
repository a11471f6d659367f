// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/campaign/slice.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/campaign/error.h"
#include "properties/tools/campaign/fuzz_log.h"
#include "properties/tools/process/process.h"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The program of a target for a slice: its folders in turn, so that sanitizers see what the fast
/// build has found.
std::string fuzzer_of(const Options &options, const std::string &target, int slice) {
  for (size_t i = 0; i < options.fuzzers.size(); ++i) {
    const auto path =
        fs::path(options.fuzzers[(i + static_cast<size_t>(slice)) % options.fuzzers.size()]) /
        target;
    if (fs::exists(path)) return path.string();
  }
  throw CampaignError(2, fmt::format("{}: no such fuzz target", target));
}

std::string corpus_of(const Options &options, const std::string &target) {
  return options.dir + "/corpus/" + target;
}

/// Folders of inputs that exist, the campaign's own first.
std::vector<std::string> inputs_of(const Options &options, const std::string &target) {
  std::vector<std::string> out = {corpus_of(options, target)};
  const std::string seeds = options.seeds + "/" + target;
  if (!options.seeds.empty() && fs::is_directory(seeds)) out.push_back(seeds);
  return out;
}

void write_file(const fs::path &path, const std::string &text) {
  const fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  file << text << std::flush;
  if (!file) throw CampaignError(4, fmt::format("{}: cannot write", path.string()));
  file.close();
  fs::rename(part, path);
}

/// A folder of the finding with its input, its case and a text for an issue; the first of a key
/// only.
json keep_finding(const Options &options, const std::string &target, const std::string &fuzzer,
                  const FuzzLog &log, const std::string &output) {
  const std::string key = finding_key(target, log.message);
  const fs::path folder = fs::path(options.dir) / "findings" / (target + "-" + key);
  if (!fs::exists(folder / "issue.md")) {
    fs::create_directories(folder);
    std::error_code ec;
    fs::copy_file(log.artifact, folder / "input", fs::copy_options::overwrite_existing, ec);
    if (!log.case_text.empty()) write_file(folder / (key + ".case"), log.case_text);
    write_file(folder / "output.txt", output);
    const std::string replay =
        log.case_text.empty() ? "" : fmt::format("assay shrink {}/{}.case\n", folder.string(), key);
    write_file(
        folder / "issue.md",
        fmt::format("# {}: {}\n\n```\n{} {}/input\n{}```\n\nWhat was printed is in output.txt.\n",
                    target, log.message, fuzzer, folder.string(), replay));
  }
  return {{"key", key}, {"message", log.message}, {"folder", folder.string()}};
}

json fuzz_slice(const Options &options, const std::string &target, int slice, uint64_t seed,
                double seconds, const std::atomic<bool> &stop) {
  const std::string fuzzer = fuzzer_of(options, target, slice);
  const std::string artifacts = options.dir + "/artifacts/";
  fs::create_directories(artifacts);
  fs::create_directories(corpus_of(options, target));
  std::vector<std::string> words = {
      fuzzer,
      fmt::format("-seed={}", seed % 0x7fffffff + 1),
      fmt::format("-max_total_time={}", std::max(1, static_cast<int>(seconds))),
      "-timeout=60",
      "-rss_limit_mb=4096",
      "-max_len=400",
      "-print_final_stats=1",
      "-artifact_prefix=" + artifacts + target + "-"};
  for (const std::string &folder : inputs_of(options, target))
    words.push_back(folder);
  const process::Ended ended =
      process::run({.words = words, .seconds = seconds + 120, .stop = &stop});
  const FuzzLog log = read_fuzz_log(ended.err);
  json line = {{"executions", log.executions}, {"features", log.features}};
  if (!log.progress.empty()) line["progress"] = log.progress;
  if (!log.message.empty())
    line["findings"].push_back(keep_finding(options, target, fuzzer, log, ended.out + ended.err));
  else if (ended.code != 0 && !stop)
    line["trouble"] = fmt::format("exit code {}: {}", ended.code, process::last_line(ended.err));
  else if (log.executions == 0 && !stop)
    line["trouble"] = "no input was run";
  return line;
}

/// The groups of a report of check as findings of a journal.
void add_groups(const json &report, json &line) {
  for (const json &group : report.value("groups", json::array())) {
    const std::string kernel = group.value("kernel", "");
    std::string message, file;
    for (const json &found : report.value("found", json::array()))
      if (found.value("kernel", "") == kernel &&
          found.value("fingerprint", "") == group.value("fingerprint", "?")) {
        message = found.value("property", "") + ": " + found.value("message", "");
        file = found.value("file", "");
        break;
      }
    line["findings"].push_back({{"key", group.value("fingerprint", "")},
                                {"message", kernel + " " + message},
                                {"folder", file}});
  }
}

/// kernel/property/class of every case that ran.
std::set<std::string> classes_of(const json &report) {
  std::set<std::string> out;
  for (const json &run : report.value("runs", json::array())) {
    const json classes = run.value("classes", json::object());
    for (auto it = classes.begin(); it != classes.end(); ++it)
      out.insert(fmt::format("{}/{}/{}", run.value("kernel", ""), run.value("property", ""),
                             classes.is_object() ? it.key() : it->get<std::string>()));
  }
  return out;
}

/// Behind its budget check still draws what no class may be without; asked to end, it reports.
json check_slice(const Options &options, uint64_t seed, double seconds, double most,
                 const std::atomic<bool> &stop) {
  const std::string runs = options.dir + "/runs", report = fmt::format("{}/{}.json", runs, seed);
  fs::create_directories(runs);
  std::vector<std::string> words = {
      options.program, "check",
      "--seed",        std::to_string(seed),
      "--budget",      fmt::format("{}s", std::max(1, static_cast<int>(seconds))),
      "--threads",     "1",
      "--json",        report,
      "--out",         options.dir + "/findings",
      "--quiet"};
  words.insert(words.end(), options.source.begin(), options.source.end());
  const double hangs = 2 * seconds + 600;
  const process::Ended ended =
      process::run({.words = words, .seconds = std::min(most, hangs), .stop = &stop});
  const bool cut = stop || (ended.code == 124 && most < hangs); // the campaign's end, not its own
  std::ifstream file(report, std::ios::binary);
  const json document = json::parse(file, nullptr, false);
  json line = {{"executions", 0}, {"classes", json::array()}};
  if (!document.is_object() || !document.value("complete", false)) {
    if (!cut)
      line["trouble"] = fmt::format("exit code {}: {}", ended.code, process::last_line(ended.err));
    return line;
  }
  line["executions"] = document.value("cases", uint64_t{0});
  line["classes"] = classes_of(document);
  add_groups(document, line);
  if (ended.code > 1 && !cut)
    line["trouble"] = fmt::format("exit code {}: {}", ended.code, process::last_line(ended.out));
  std::error_code ec;
  if (ended.code == 0) fs::remove(report, ec); // the line says it all
  return line;
}

size_t files_in(const fs::path &folder) {
  size_t count = 0;
  if (fs::is_directory(folder))
    for ([[maybe_unused]] const auto &entry : fs::directory_iterator(folder))
      ++count;
  return count;
}

} // namespace

std::vector<std::string> fuzz_targets(const std::vector<std::string> &folders) {
  std::set<std::string> out;
  for (const std::string &folder : folders) {
    std::error_code ec;
    for (const auto &entry : fs::directory_iterator(folder, ec)) {
      const std::string name = entry.path().filename().string();
      const bool test = name.size() > 5 && name.rfind("_test") == name.size() - 5;
      if (name.rfind("fuzz_", 0) == 0 && !test && entry.is_regular_file() &&
          access(entry.path().c_str(), X_OK) == 0)
        out.insert(name);
    }
  }
  return {out.begin(), out.end()};
}

json run_slice(const Options &options, const std::string &task, int slice, uint64_t seed,
               double seconds, double most, const std::atomic<bool> &stop) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  json line = task == kCheck ? check_slice(options, seed, seconds, most, stop)
                             : fuzz_slice(options, task, slice, seed, seconds, stop);
  line["seconds"] = std::chrono::duration<double>(Clock::now() - start).count();
  line["at"] = static_cast<int64_t>(std::time(nullptr));
  return line;
}

std::pair<size_t, size_t> prune_corpus(const Options &options, const std::string &target) {
  const fs::path corpus = corpus_of(options, target), pruned = corpus.string() + ".pruned",
                 old = corpus.string() + ".old";
  const size_t before = files_in(corpus);
  if (before == 0) return {0, 0};
  const std::string fuzzer = fuzzer_of(options, target, 0);
  const std::atomic<bool> never{false};
  fs::remove_all(pruned);
  fs::create_directories(pruned);
  const auto merged =
      process::run({.words = {fuzzer, "-merge=1", "-max_len=400", pruned.string(), corpus.string()},
                    .seconds = 600,
                    .stop = &never});
  const size_t after = files_in(pruned);
  const bool smaller = merged.ok() && after > 0 && after < before;
  if (!smaller ||
      !process::run({.words = {fuzzer, "-runs=0", pruned.string()}, .seconds = 600, .stop = &never})
           .ok()) {
    fs::remove_all(pruned);
    return {before, before};
  }
  fs::rename(corpus, old);
  fs::rename(pruned, corpus);
  fs::remove_all(old);
  return {before, after};
}

void repair_corpus(const Options &options, const std::string &target) {
  const fs::path corpus = corpus_of(options, target), old = corpus.string() + ".old";
  std::error_code ec;
  if (fs::exists(old) && !fs::exists(corpus)) fs::rename(old, corpus);
  fs::remove_all(corpus.string() + ".pruned", ec);
  fs::remove_all(old, ec);
}

} // namespace assay::campaign
