// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/parse_error.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

/// Letters to put in, take out or change.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

/// The command that was given, or the program.
const CLI::App &given(const CLI::App &app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands[0];
}

std::string nearest_option(const std::string &word, const CLI::App &app) {
  constexpr size_t kFar = 3;
  size_t best = kFar;
  std::string out;
  for (const CLI::App *at : {&given(app), &app})
    for (const CLI::Option *option : at->get_options())
      for (const std::string &name : option->get_lnames())
        if (const size_t far = distance(word, "--" + name); far < best) {
          best = far;
          out = "--" + name;
        }
  return out;
}

std::string unknown_words(const CLI::App &app) {
  std::vector<std::string> words = app.remaining(true);
  const CLI::App &command = given(app);
  const auto option = std::find_if(words.begin(), words.end(),
                                   [](const std::string &word) { return word.starts_with("--"); });
  if (option == words.end())
    return fmt::format("{}: takes no '{}' (assay {} --help)", command.get_name(),
                       words.empty() ? "" : words[0], command.get_name());
  const std::string near = nearest_option(*option, app);
  return fmt::format("{}: unknown option {}{} (assay {} --help)", command.get_name(), *option,
                     near.empty() ? "" : "; is " + near + " meant?", command.get_name());
}

/// "files is required" of CLI11, as what to type.
std::string missing_word(const std::string &error, const CLI::App &app) {
  const CLI::App &command = given(app);
  const std::string name = error.substr(0, error.find(' '));
  for (const CLI::Option *option : command.get_options())
    if (option->get_positional() && option->get_name() == name)
      return fmt::format("{}: {} is missing: {} (assay {} --help)", command.get_name(), name,
                         option->get_description(), command.get_name());
  return error;
}

/// "--plugin: 1 required LIB missing".
std::string missing_value(const std::string &error, const CLI::App &app) {
  const std::string name = error.substr(0, error.find(':'));
  const CLI::Option *option = given(app).get_option_no_throw(name);
  if (option == nullptr) option = app.get_option_no_throw(name);
  return option == nullptr
             ? error
             : fmt::format("{} needs a value: {} {}", name, name, option->get_type_name());
}

} // namespace

std::string words_of(const CLI::ParseError &error, const CLI::App &app) {
  const std::string text = error.what();
  const auto is = [&](auto *type) { return dynamic_cast<decltype(type)>(&error) != nullptr; };
  if (is(static_cast<const CLI::ExtrasError *>(nullptr))) return unknown_words(app);
  if (is(static_cast<const CLI::RequiredError *>(nullptr))) return missing_word(text, app);
  if (is(static_cast<const CLI::ArgumentMismatch *>(nullptr))) return missing_value(text, app);
  return text;
}

} // namespace assay
