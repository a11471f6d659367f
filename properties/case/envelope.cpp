// SPDX-License-Identifier: Apache-2.0
#include "properties/case/envelope.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "properties/case/codec.h"
#include "properties/case/fields.h"
#include "properties/case/hash.h"

namespace assay {
namespace {

/// Every draw lies below these.
Limits widest() {
  Limits limits = large_limits();
  limits.head_dim_256 = true;
  return limits;
}

/// "level.3.page_size" -> "level.page_size".
std::string plain_name(const std::string &name) {
  if (name.rfind("level.", 0) != 0) return name;
  size_t at = 6;
  while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])))
    ++at;
  return at == 6 ? name : "level." + name.substr(at + 1);
}

/// Values in memory, where pages lie, which requests a segment serves: no kernel's shape.
bool is_shape(const std::string &name) {
  for (std::string_view other :
       {"family", "spare_pages", "huge_pool", "sharing", "placement", "scale", "kv_scales",
        "lse.regime", "poison", "level.first", "level.segments", "level.requests"})
    if (name.rfind(other, 0) == 0) return false;
  for (std::string_view other : {"q.", "k.", "v.", "o.", "schedule."})
    if (name.rfind(other, 0) == 0) return false;
  return true;
}

FieldKind kind_of(const std::string &name) {
  if (name == "seq_lens" || name == "level.lens") return FieldKind::kRange;
  return name == "window" ? FieldKind::kZeroOrNot : FieldKind::kEach;
}

/// Whatever is visited and not looked at.
struct Visitor {
  void word(const std::string &, uint32_t &) {}
  bool gate(bool) { return true; }
  bool added_gate(bool, int) { return true; }
  void fit(const std::string &, std::vector<int> &lens, int page_size, int &slots) {
    fields::cut_to_slots(lens, page_size, slots);
  }
  void page_ids(Problem &p, int pages, int pool) {
    const bool sound =
        static_cast<int>(p.page_ids.size()) == pages &&
        std::all_of(p.page_ids.begin(), p.page_ids.end(), [&](int id) { return id < pool; });
    if (sound) return;
    p.placement = Placement::kReversed;
    p.page_ids.clear();
  }
};

class Lister : public Visitor {
public:
  std::vector<ShapeField> found;

  void integer(const std::string &name, int &value, const Range &r) {
    if (ShapeField *field = add(name)) list(*field, r, 1);
    value = std::clamp(value, r.lo, r.hi);
  }
  void eighths(const std::string &name, int &, const Range &r) {
    if (ShapeField *field = add(name)) list(*field, r, 8);
  }
  void integers(const std::string &name, std::vector<int> &, int, const Range &r) {
    if (ShapeField *field = add(name)) list(*field, r, 1);
  }
  template <class E>
  void choice(const std::string &name, E &, std::span<const EnumName<E>> options) {
    ShapeField *field = add(name);
    for (const auto &option : options) {
      const int value = static_cast<int>(option.value);
      if (field != nullptr && field->labels.emplace(value, option.name).second)
        field->values.push_back(value);
    }
  }
  void flag(const std::string &name, bool &) {
    if (ShapeField *field = add(name)) {
      field->values = {0, 1};
      field->labels = {{0, "no"}, {1, "yes"}};
    }
  }
  void added_flag(const std::string &name, bool &value, Added, bool) { flag(name, value); }
  void added_integers(const std::string &name, std::vector<int> &, int, const Range &, Added) {
    bool given = false;
    flag(name, given);
  }

private:
  ShapeField *add(const std::string &full) {
    const std::string name = plain_name(full);
    if (!is_shape(name)) return nullptr;
    for (const ShapeField &field : found)
      if (field.name == name) return nullptr;
    found.push_back({.name = name, .kind = kind_of(name), .values = {}, .labels = {}});
    return &found.back();
  }
  static void list(ShapeField &field, const Range &r, int unit) {
    if (field.kind == FieldKind::kZeroOrNot) {
      field.values = {0, 16};
    } else if (field.kind == FieldKind::kRange) {
      for (int value : {1, 0, 16, 64, 128, 288, 1024, 4096})
        if (value <= r.hi) field.values.push_back(value);
    } else {
      field.values.push_back(r.simplest * unit);
      for (int value = r.lo; value <= r.hi; ++value)
        if (value != r.simplest) field.values.push_back(value * unit);
    }
  }
};

/// Assigns through `change(name, value)`, then cuts to ranges.
template <class Change>
class Changer : public Visitor {
public:
  explicit Changer(const Change &change) : change_(change) {}

  void integer(const std::string &name, int &value, const Range &r) {
    value = std::clamp(change_(plain_name(name), value), r.lo, r.hi);
  }
  void eighths(const std::string &name, int &value, const Range &r) {
    value = std::clamp(change_(name, value) / 8, r.lo, r.hi) * 8;
  }
  void integers(const std::string &name, std::vector<int> &values, int count, const Range &r) {
    values.resize(static_cast<size_t>(count), r.simplest);
    for (int &value : values)
      integer(name, value, r);
  }
  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>>) {
    value = static_cast<E>(change_(plain_name(name), static_cast<int>(value)));
  }
  void flag(const std::string &name, bool &value) { value = change_(name, value) != 0; }
  void added_flag(const std::string &name, bool &value, Added, bool) { flag(name, value); }
  /// A kernel takes such a list or none: 1 gives the simplest one to a case that has none.
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    if (change_(name, !values.empty()) == 0) return values.clear();
    values.resize(static_cast<size_t>(count), r.simplest);
    for (int &value : values)
      value = std::clamp(value, r.lo, r.hi);
  }

private:
  const Change &change_;
};

template <class Change>
Problem changed(Problem p, const Limits &limits, const Change &change) {
  Changer<Change> io(change);
  visit_fields(io, p, limits);
  if (!is_fp8(p)) {
    p.k_scale = p.v_scale = ScaleLayout::kNone;
    p.kv_scales = KvScaleRegime::kUnit;
  }
  Problem plain = p;
  plain.feature_seed = 0;
  return has_features(plain) ? p : plain; // a seed alone means nothing
}

/// Slots for three pages of the smallest size that is taken, in every head.
int room_for_pages(const Envelope &envelope, const Limits &limits) {
  int size = 1;
  for (const char *name : {"page_size", "level.page_size"})
    if (const auto at = envelope.fields.find(name);
        at != envelope.fields.end() && !at->second.taken.empty())
      size = *std::min_element(at->second.taken.begin(), at->second.taken.end());
  return 3 * size * limits.kv_heads;
}

/// Slots for requests that were empty, where a kernel takes none of those.
int room_for_empty(const Envelope &envelope, const Problem &p, const Limits &limits) {
  const auto at = envelope.fields.find("seq_lens");
  if (at == envelope.fields.end() || at->second.taken.empty()) return 0;
  const int pages = (at->second.smallest() + p.page_size - 1) / p.page_size;
  return p.batch * pages * p.page_size * limits.kv_heads;
}

} // namespace

std::string ShapeField::label(int value) const {
  const auto at = labels.find(value);
  return at == labels.end() ? std::to_string(value) : at->second;
}

std::vector<ShapeField> shape_fields(Family family) {
  Lister io;
  Problem p = decode_family({}, widest(), family);
  p.kv = KvType::kE4m3; // its scales are fields too
  visit_fields(io, p, widest());
  return io.found;
}

Problem with_field(Problem p, const std::string &name, int value) {
  return changed(std::move(p), widest(),
                 [&](const std::string &field, int now) { return field == name ? value : now; });
}

int Envelope::Field::largest() const { return *std::max_element(taken.begin(), taken.end()); }
bool Envelope::Field::refuses_below() const {
  return !refused.empty() && *std::min_element(refused.begin(), refused.end()) <
                                 *std::min_element(taken.begin(), taken.end());
}
int Envelope::Field::smallest() const {
  return refuses_below() ? *std::min_element(taken.begin(), taken.end()) : 0;
}

bool Envelope::takes(const ShapeField &field, int value) const {
  const auto at = fields.find(field.name);
  if (at == fields.end()) return true;
  const std::vector<int> &taken = at->second.taken;
  switch (field.kind) {
  case FieldKind::kEach:
    return std::find(taken.begin(), taken.end(), value) != taken.end();
  case FieldKind::kRange:
    return !taken.empty() && value >= at->second.smallest() && value <= at->second.largest();
  case FieldKind::kZeroOrNot:
    return std::any_of(taken.begin(), taken.end(),
                       [&](int one) { return (one == 0) == (value == 0); });
  }
  return true;
}

std::string Envelope::reason_of(const std::string &field, int value) const {
  const auto at = fields.find(field);
  if (at == fields.end() || at->second.refused.empty()) return "";
  const std::vector<int> &refused = at->second.refused;
  const auto nearest = std::min_element(refused.begin(), refused.end(), [&](int a, int b) {
    return std::abs(a - value) < std::abs(b - value);
  });
  return at->second.reasons[nearest - refused.begin()];
}

Problem Envelope::fit(const Problem &p, const Limits &limits) const {
  if (fields.empty()) return p;
  // The limits of a draw keep it small; what a kernel takes may lie beyond them.
  Limits wide = widest();
  wide.keys = limits.keys;
  wide.slots = std::max(limits.slots, room_for_pages(*this, wide)) + room_for_empty(*this, p, wide);
  wide.merge_values = limits.merge_values;
  const uint64_t seed = hash_values(0xf17u, p.q.seed, p.k.seed, p.v.seed, p.schedule.seed);
  const Problem out = changed(p, wide, [&](const std::string &name, int value) {
    const auto at = fields.find(name);
    if (at == fields.end() || at->second.taken.empty()) return value;
    ShapeField field{.name = name, .kind = kind_of(name), .values = {}, .labels = {}};
    if (takes(field, value)) return value;
    const std::vector<int> &taken = at->second.taken;
    if (field.kind == FieldKind::kRange)
      return std::clamp(value, at->second.smallest(), at->second.largest());
    return taken[hash_values(seed, name.size(), name[0], value) % taken.size()];
  });
  return problem_error(out, full_limits()).empty() ? out : p;
}

} // namespace assay
