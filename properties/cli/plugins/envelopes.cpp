// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/plugins/envelopes.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/run/probe.h"

namespace assay {
namespace {

struct Wish {
  std::string field;
  std::vector<std::string> values;
};

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> parts{""};
  for (char c : text)
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// "dtype=bf16,head_dim=64/128".
std::vector<Wish> parse_only(const std::string &text) {
  std::vector<Wish> wishes;
  if (text.empty()) return wishes;
  for (const std::string &part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
      throw CliError(kExitUsage, fmt::format("--only {}: not FIELD=VALUE", quoted_word(part)));
    wishes.push_back({part.substr(0, equals), split(part.substr(equals + 1), '/')});
  }
  return wishes;
}

const ShapeField *find_field(const std::vector<ShapeField> &fields, const std::string &name) {
  for (const ShapeField &field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

/// Throws what is wrong with a value of the field.
int value_of(const ShapeField &field, const std::string &text) {
  std::string known;
  for (int value : field.values) {
    if (field.label(value) == text) return value;
    known += (known.empty() ? "" : ", ") + field.label(value);
  }
  throw CliError(kExitUsage, fmt::format("--only {}={}: not one of {}", field.name, text, known));
}

/// The first value that is wished of each field.
std::map<std::string, int> first_values(const std::vector<ShapeField> &fields,
                                        const std::vector<Wish> &wishes) {
  std::map<std::string, int> out;
  for (const Wish &wish : wishes)
    if (const ShapeField *field = find_field(fields, wish.field))
      out[field->name] = value_of(*field, wish.values.front());
  return out;
}

void narrow(Envelope &envelope, const assay_kernel &kernel, const ShapeField &field,
            const Wish &wish) {
  Envelope::Field asked;
  for (const std::string &text : wish.values) {
    const int value = value_of(field, text);
    if (!envelope.takes(field, value))
      throw CliError(kExitUsage, fmt::format("--only {}={}: {} refuses it: {}", field.name, text,
                                             kernel.name, envelope.reason_of(field.name, value)));
    asked.taken.push_back(value);
  }
  for (int value : field.values)
    if (std::find(asked.taken.begin(), asked.taken.end(), value) == asked.taken.end())
      asked.refused.push_back(value);
  asked.reasons.assign(asked.refused.size(), "--only");
  envelope.fields[field.name] = asked;
}

/// Leaves every request of a paged case a key.
void exclude_empty_requests(Envelope &envelope) {
  constexpr const char *kReason = "--assume no_empty_requests";
  Envelope::Field &lengths = envelope.fields["seq_lens"];
  if (lengths.taken.empty()) lengths.taken = {1, full_limits().keys};
  std::erase(lengths.taken, 0);
  if (std::ranges::find(lengths.refused, 0) != lengths.refused.end()) return;
  lengths.refused.push_back(0);
  lengths.reasons.emplace_back(kReason);
}

} // namespace

Envelopes envelopes_of(const Session &session, const std::vector<const assay_kernel *> &kernels,
                       const std::string &only) {
  const std::vector<Wish> wishes = parse_only(only);
  Envelopes out;
  std::set<std::string> met;
  for (const assay_kernel *kernel : kernels) {
    const auto fields = shape_fields(static_cast<Family>(kernel->family));
    const auto known = first_values(fields, wishes);
    Envelope envelope;
    if (session.workers)
      envelope = probe_envelope(*session.sut(*kernel, WorkerUse::kAsk), known);
    else if (session.third_party() || is_narrow(*kernel))
      envelope = probe_envelope(*kernel, session.isolates(), known);
    const bool paged = kernel->family == ASSAY_FAMILY_PAGED;
    const bool excludes = session.options.assumed.no_empty_requests &&
                          (paged || kernel->family == ASSAY_FAMILY_CASCADE);
    if (excludes && paged) exclude_empty_requests(envelope);
    for (const Wish &wish : wishes)
      if (const ShapeField *field = find_field(fields, wish.field)) {
        met.insert(wish.field);
        narrow(envelope, *kernel, *field, wish);
      }
    if (excludes || !envelope.fields.empty()) out[kernel] = std::move(envelope);
  }
  for (const Wish &wish : wishes)
    if (met.count(wish.field) == 0)
      throw CliError(kExitUsage,
                     fmt::format("--only {}: no field of these kernels' cases", wish.field));
  return out;
}

std::vector<std::string> not_covered(const RunSummary &summary, const assay_kernel *kernel) {
  std::set<std::string> outside;
  for (const PropertyRun &run : summary.runs)
    if (run.kernel == kernel) outside.insert(run.outside.begin(), run.outside.end());
  for (const PropertyRun &run : summary.runs)
    if (run.kernel == kernel)
      for (const auto &[name, count] : run.classes)
        outside.erase(name);
  return {outside.begin(), outside.end()};
}

std::vector<std::string> in_words(const assay_kernel &kernel, const Envelope &envelope) {
  std::vector<std::string> out;
  for (const ShapeField &field : shape_fields(static_cast<Family>(kernel.family)))
    if (const auto at = envelope.fields.find(field.name); at != envelope.fields.end())
      out.push_back(describe_field(field, at->second));
  return out;
}

nlohmann::json to_json(const assay_kernel &kernel, const Envelope &envelope) {
  nlohmann::json out = nlohmann::json::object();
  for (const ShapeField &field : shape_fields(static_cast<Family>(kernel.family))) {
    const auto at = envelope.fields.find(field.name);
    if (at == envelope.fields.end()) continue;
    nlohmann::json entry = {{"taken", nlohmann::json::array()},
                            {"refused", nlohmann::json::array()},
                            {"reason", at->second.refused.empty() ? "" : at->second.reasons[0]}};
    for (int value : at->second.taken)
      entry["taken"].push_back(field.label(value));
    for (int value : at->second.refused)
      entry["refused"].push_back(field.label(value));
    out[field.name] = entry;
  }
  return out;
}

} // namespace assay
