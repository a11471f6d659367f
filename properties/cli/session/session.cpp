// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/session.h"
#include "kernels/abi/kernel_table.h"
#include "oracle/bounds/block_fma.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace assay {

const char *target_name(assay_target target) {
  return target == ASSAY_TARGET_CUDA ? "cuda" : "simt";
}

const char *verdict_word(CheckResult::Kind kind) {
  static constexpr const char *kWords[] = {"pass", "FAIL", "UNDECIDED", "n/a"};
  return kWords[static_cast<int>(kind)];
}

std::vector<const assay_kernel *> Session::kernels_on(const std::string &target) const {
  if (target != "simt" && target != "cuda")
    throw CliError(kExitUsage, fmt::format("unknown target {}; simt or cuda", quoted_word(target)));
  assay_target wanted = target == "cuda" ? ASSAY_TARGET_CUDA : ASSAY_TARGET_SIMT;
  if (std::string reason = target_unavailable(wanted); !reason.empty())
    throw CliError(kExitUnsupported, fmt::format("target {}: {}", target, reason));
  std::vector<const assay_kernel *> out;
  for (const assay_kernel &kernel : kernels_in(*plugin))
    if (kernel.target == wanted) out.push_back(&kernel);
  if (out.empty())
    throw CliError(kExitUnsupported,
                   fmt::format("plugin {} has no kernels for target {}", plugin->name, target));
  return out;
}

std::vector<const assay_kernel *> Session::select_kernels(const std::string &name,
                                                          const std::string &target) const {
  auto all = kernels_on(target);
  if (name.empty()) return all;
  std::string known;
  for (const assay_kernel *kernel : all) {
    if (name == kernel->name) return {kernel};
    known += (known.empty() ? "" : ", ") + std::string(kernel->name);
  }
  throw CliError(kExitUsage, fmt::format("unknown kernel {}; known: {}", quoted_word(name), known));
}

std::vector<const Property *> Session::select_properties(const std::string &name) const {
  std::vector<const Property *> out;
  for (const Property &property : properties())
    if (name.empty() || name == property.name) out.push_back(&property);
  if (out.empty())
    throw CliError(kExitUsage, fmt::format("unknown property {}; see 'assay list properties'",
                                           quoted_word(name)));
  return out;
}

bool Session::replays_scores(const assay_kernel &kernel) const {
  return third_party() ? options.replay_scores : oracle::has_measured_blocks(kernel.arithmetic);
}

std::unique_ptr<Sut> Session::plain_sut(const assay_kernel &kernel, WorkerUse use,
                                        bool apart) const {
  if (workers)
    return make_worker_sut(kernel, workers, static_cast<int>(&kernel - plugin->kernels), use);
  const bool own_process = isolates() || (apart && kernel.target == ASSAY_TARGET_SIMT);
  return own_process ? make_process_sut(kernel, options.patience_or(kFirstPatience), forker.get())
                     : make_sut(kernel);
}

std::unique_ptr<Sut> Session::sut(const assay_kernel &kernel, WorkerUse use, bool apart) const {
  std::unique_ptr<Sut> out = plain_sut(kernel, use, apart);
  out->set_replays_scores(replays_scores(kernel));
  out->assume(options.assumed);
  return out;
}

std::string Session::colour(const char *code, const std::string &text) const {
  return streams.terminal ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

void require_writable_file(const std::string &option, const std::string &path) {
  std::error_code ignored;
  const bool existed = std::filesystem::exists(path, ignored);
  if (!std::ofstream(path, std::ios::app))
    throw CliError(kExitUsage, fmt::format("{} {}: cannot write", option, path));
  // Nothing is left behind when the command is refused for another reason.
  if (!existed) std::filesystem::remove(path, ignored);
}

void Session::check_json() const {
  if (!options.json.empty() && !options.json_to_out())
    require_writable_file("--json", options.json);
}

void Session::begin(const nlohmann::json &document) const {
  if (options.json.empty() || options.json_to_out()) return;
  std::ofstream(options.json) << document.dump(2) << "\n";
}

int Session::finish(const nlohmann::json &document, int exit) const {
  if (options.json.empty()) return exit;
  const std::string text =
      document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (options.json_to_out()) {
    json << text;
    return exit;
  }
  std::ofstream file(options.json);
  file << text;
  if (file.flush()) return exit;
  streams.err << fmt::format("assay: --json {}: cannot write\n", options.json);
  return exit == kExitPass ? kExitHarness : exit;
}

std::string Session::kernel_options() const {
  std::string out;
  if (workers)
    out = " --worker " + shell_quoted(options.worker);
  else if (third_party())
    out = " --plugin " + shell_quoted(options.plugin);
  if (third_party() && options.patience > 0)
    out += fmt::format(" --patience {}s", options.patience);
  if (third_party() && options.replay_scores) out += " --replay-scores";
  if (!options.declared_by.empty()) out += " --declared-by " + shell_quoted(options.declared_by);
  if (const auto words = words_of(options.assumed); !words.empty())
    out += fmt::format(" --assume {}", fmt::join(words, ","));
  return out;
}

Assumed parse_assumed(const std::string &text) {
  Assumed out;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto all = assumptions();
    const auto known = std::ranges::find(all, word, [](const Assumption &a) { return a.word; });
    if (known == all.end()) {
      std::vector<std::string> expected;
      for (const Assumption &a : all)
        expected.emplace_back(a.word);
      throw CliError(kExitUsage, fmt::format("--assume {}: not one of {}", quoted_word(word),
                                             fmt::join(expected, ", ")));
    }
    out.*known->flag = true;
  }
  return out;
}

double parse_duration(const std::string &text) {
  // libc++ before 20 has no std::from_chars of double.
  const size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number = text.substr(0, unit_at), unit = text.substr(unit_at);
  char *end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  const double scale = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (*end != '\0' || scale == 0 || !(value > 0) || value * scale > 1e7)
    throw CliError(kExitUsage, fmt::format("'{}' is not a duration such as 60s, 5m or 1h", text));
  return value * scale;
}

std::string shell_quoted(const std::string &word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./+=:,@%").find(char(c)) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

} // namespace assay
