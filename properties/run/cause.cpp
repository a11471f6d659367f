// SPDX-License-Identifier: Apache-2.0
#include "properties/run/cause.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "properties/case/hash.h"

namespace assay {
namespace {

using Kind = Symptom::Kind;

void add(std::vector<std::string> &names, bool member, const char *name) {
  if (member) names.emplace_back(name);
}

int longest(const Problem &p) {
  int keys = 0;
  for (int n : p.seq_lens)
    keys = std::max(keys, n);
  for (const CascadeLevel &level : p.levels)
    for (int n : level.lens)
      keys = std::max(keys, n);
  return keys;
}

bool partial_page(const Problem &p) {
  const auto cut = [](const std::vector<int> &lens, int page_size) {
    return std::any_of(lens.begin(), lens.end(), [&](int n) { return n % page_size != 0; });
  };
  return cut(p.seq_lens, p.page_size) ||
         std::any_of(p.levels.begin(), p.levels.end(),
                     [&](const CascadeLevel &level) { return cut(level.lens, level.page_size); });
}

/// Words of a case, apart from those of which nobody knows whether they are needed.
class Needs {
public:
  Needs(const ShrinkStats &stats, std::vector<std::string> &untried)
      : stats_(stats), untried_(untried) {}

  void add(std::vector<std::string> &to, bool has, const char *word, ShrinkField field) const {
    if (has) (stats_.knows(field) ? to : untried_).emplace_back(word);
  }

private:
  const ShrinkStats &stats_;
  std::vector<std::string> &untried_;
};

using enum ShrinkField;

void features_of(const Problem &p, unsigned about, const Needs &needs,
                 std::vector<std::string> &to) {
  for (const FeatureRow &feature : features())
    if (about & feature.bit)
      to.emplace_back(feature.word); // of every case of the property
    else
      needs.add(to, feature.present(p), feature.word, kFeatures);
  needs.add(to, p.enable_pdl, "early start", kSettings);
  needs.add(to, p.in_place != InPlace::kNo, "in place", kSettings);
}

void shape_of_attention(const Problem &p, int tile, const Needs &needs,
                        std::vector<std::string> &to) {
  needs.add(to, p.group_size > 1, "head group", kHeads);
  needs.add(to, p.num_splits > 1, "splits", kShape);
  needs.add(to, p.levels.size() > 1, "levels", kLevels);
  needs.add(to, tile > 0 && longest(p) > tile, "several tiles", kLengths);
  needs.add(to, p.placement != Placement::kIdentity, "moved pages", kPages);
  needs.add(to, p.sharing != Sharing::kNone, "shared pages", kPages);
  needs.add(to, p.huge_pool, "huge pool", kPages);
  needs.add(to, p.k_layout == Layout::kHnd, "keys in hnd", kPages);
  needs.add(to, p.v_layout == Layout::kHnd, "values in hnd", kPages);
  needs.add(to, p.table_pad > 0, "table stride", kPages);
}

void shape_of(const Problem &p, int tile, const Needs &needs, std::vector<std::string> &to) {
  needs.add(to, p.batch > 1, "several rows", kBatch);
  needs.add(to, p.num_kv_heads > 1, "several heads", kHeads);
  if (is_attention(p)) {
    shape_of_attention(p, tile, needs, to);
  } else {
    const bool several = p.family == Family::kMergeStates && p.num_states > 2;
    needs.add(to, several, "several states", kLengths);
    const bool empty = p.lse_regime == LseRegime::kSomeEmpty ||
                       p.lse_regime == LseRegime::kOneAlive || p.lse_regime == LseRegime::kAllEmpty;
    needs.add(to, empty, "empty states", kValues);
  }
  needs.add(to, p.q_pad + p.out_pad + p.k_pad + p.v_pad + p.lse_pad > 0, "strides", kShape);
  needs.add(to, p.base_seed != 0, "bases", kSettings);
  const bool outermost = p.q_heads_outermost || p.out_heads_outermost || p.lse_heads_outermost;
  needs.add(to, outermost, "heads outermost", kSettings);
  // Not its seed, from which properties also pick what they look at.
  const ScheduleSpec plain;
  const bool other = p.schedule.order != plain.order || p.schedule.copies != plain.copies;
  needs.add(to, other, "schedule", kSettings);
}

std::string joined(const std::vector<std::string> &names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Words of the executor for an access that nothing orders; the schedule decides which one it is.
bool about_order(const Symptom &s) {
  return std::ranges::any_of(
      std::array{"async-in-flight-", "unordered-access ", "uninitialised-shared-read "},
      [&](const char *word) { return s.where.starts_with(word); });
}

bool same_place(const Symptom &a, const Symptom &b) {
  const bool one_line = a.line > 0 && a.line == b.line && a.file == b.file;
  return a.where == b.where || (one_line && about_order(a) && about_order(b));
}

std::string outputs(const Cause &cause) {
  return cause.wrong_o && cause.wrong_lse ? "o and lse"
         : cause.wrong_o                  ? "o"
         : cause.wrong_lse                ? "lse"
                                          : "";
}

} // namespace

bool Cause::located() const {
  return symptom.kind == Kind::kHazard || symptom.kind == Kind::kMemory ||
         symptom.kind == Kind::kRefused || symptom.kind == Kind::kCrash ||
         symptom.kind == Kind::kDeclared;
}

Cause cause_of(const Problem &shrunk, const CheckResult &result, const assay_kernel &kernel,
               const Property &property, const ShrinkStats &stats) {
  Cause out;
  const Symptom &s = out.symptom = result.symptom;
  // A verdict of the oracle knows about every output, the others about the first that is wrong.
  const double o = std::max({result.ratio_t0, result.ratio_t1, result.ratio_t2});
  out.wrong_o = o > 1 || (s.of_element() && s.dim != Symptom::kLse);
  out.wrong_lse = result.ratio_lse > 1 || s.dim == Symptom::kLse;
  const Needs needs(stats, out.untried);
  features_of(shrunk, property.about, needs, out.features);
  shape_of(shrunk, kernel.arithmetic.tile_tokens, needs, out.shape);
  if (s.of_element()) {
    add(out.position, s.row > 0, "a later row");
    add(out.position, s.head > 0, "a later head");
  }
  if (is_attention(shrunk)) {
    add(out.position, longest(shrunk) == 0, "no key");
    add(out.position, longest(shrunk) == 1, "one key");
    add(out.position, partial_page(shrunk), "partial page");
  }
  return out;
}

Cause cause_after_others(const CheckResult &result) {
  Cause out;
  out.symptom = result.symptom;
  out.features = {"calls before it"};
  // One mistake shows in many ways, by what the calls before it left.
  if (!out.located()) out.symptom.kind = Kind::kOutside;
  return out;
}

bool alike(const Cause &a, const Cause &b) {
  if (a.located() != b.located()) return false;
  if (a.located()) return a.symptom.kind == b.symptom.kind && same_place(a.symptom, b.symptom);
  if (a.features != b.features) return false;
  // A feature tells more than the rows and the output that its case was left with.
  if (!a.features.empty()) return true;
  if (a.shape != b.shape) return false;
  const bool unknown = !(a.wrong_o || a.wrong_lse) || !(b.wrong_o || b.wrong_lse);
  return unknown || (a.wrong_o && b.wrong_o) || (a.wrong_lse && b.wrong_lse);
}

std::string describe(const Cause &cause) {
  if (cause.located())
    return fmt::format("{}: {}", name_of(cause.symptom.kind), cause.symptom.where);
  std::string text = name_of(cause.symptom.kind);
  if (cause.symptom.origin != Origin::kComputed)
    text += fmt::format(" ({})", name_of(cause.symptom.origin));
  if (!cause.symptom.where.empty()) text += ": " + cause.symptom.where;
  if (const std::string wrong = outputs(cause); !wrong.empty()) text += ", " + wrong;
  std::vector<std::string> needs = cause.features;
  needs.insert(needs.end(), cause.shape.begin(), cause.shape.end());
  if (!needs.empty()) text += ", needs " + joined(needs);
  if (!cause.untried.empty()) text += ", not tried without " + joined(cause.untried);
  if (!cause.position.empty()) text += ", " + joined(cause.position);
  return text;
}

std::string fingerprint(const assay_kernel &kernel, const Property &property, const Cause &cause) {
  uint64_t h = 0;
  const auto mix = [&](const std::string &word) {
    for (char c : word)
      h = hash_mix(h ^ static_cast<unsigned char>(c));
    h = hash_mix(h ^ 0x100);
  };
  mix(kernel.name);
  mix(property.name);
  mix(name_of(cause.symptom.kind));
  if (cause.located()) {
    mix(cause.symptom.where);
  } else {
    if (cause.symptom.origin != Origin::kComputed) mix(name_of(cause.symptom.origin));
    mix(outputs(cause));
    mix(joined(cause.features));
    mix(joined(cause.shape));
    mix(joined(cause.position));
  }
  return fmt::format("{:016x}", h);
}

} // namespace assay
