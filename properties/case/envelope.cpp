// SPDX-License-Identifier: Apache-2.0
#include "properties/case/envelope.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "properties/case/codec.h"
#include "properties/case/fields.h"
#include "properties/case/hash.h"

namespace assay {
namespace {

/// The sizes that a kernel is asked about beyond small ones: as serving has them, beside powers of
/// two, and what eight bits hold. Kernels in Python may run what they are only asked about, so that
/// none is larger.
constexpr int kLargeSizes[] = {40,  48,  56,  63,  64,  65,  71,  72,  80,  96,  100, 112, 120, 127,
                               128, 129, 160, 192, 255, 256, 257, 384, 512, 513, 528, 784, 1024};
constexpr int kMostHeads = 129;    ///< a call of more would cost more than the rest of them
constexpr int kEverySizeUpTo = 33; ///< smaller ones are all asked about

bool counts_heads(const std::string &name) {
  return name == "num_kv_heads" || name == "heads" || name == "group_size";
}

/// Up to which size a value that a kernel refuses is replaced by any one that it takes: a larger
/// one would make a case expensive that was not.
int usual_size(const std::string &name) {
  const Limits limits = large_limits();
  if (name == "batch" || name == "rows") return limits.batch;
  if (name == "num_kv_heads" || name == "heads") return limits.kv_heads;
  if (name == "group_size") return limits.group;
  if (name == "page_size" || name == "level.page_size") return limits.page_size;
  if (name == "num_splits") return limits.splits;
  if (name == "num_states") return limits.states;
  return std::numeric_limits<int>::max();
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
  return name == "window_left" ? FieldKind::kNoneOrSome : FieldKind::kEach;
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
    if (field.kind == FieldKind::kNoneOrSome) {
      field.values = {-1, 15};
    } else if (field.kind == FieldKind::kRange) {
      for (int value : {1, 0, 16, 64, 128, 288, 1024, 4096, 16'384})
        if (value <= r.hi) field.values.push_back(value);
    } else {
      field.values.push_back(r.simplest * unit);
      const auto add = [&](int value) {
        if (value != r.simplest && value <= r.hi) field.values.push_back(value * unit);
      };
      // Widths of rows are few: every one.
      for (int value = r.lo; value <= std::max(kEverySizeUpTo, unit > 1 ? r.hi : 0); ++value)
        add(value);
      if (unit == 1)
        for (int value : kLargeSizes)
          if (value <= kMostHeads || !counts_heads(field.name)) add(value);
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

/// The nearest size at or below (`side` -1), or at or above (1) a value, that was asked about.
std::optional<int> nearest_asked(const Envelope::Field &answers, int value, int side) {
  std::optional<int> out;
  for (const std::vector<int> *sizes : {&answers.taken, &answers.refused})
    for (int size : *sizes)
      if ((size - value) * side >= 0 && (!out || std::abs(size - value) < std::abs(*out - value)))
        out = size;
  return out;
}

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

/// The smallest size of a field that is taken, or 1.
int smallest_taken(const Envelope &envelope, const char *name) {
  const auto at = envelope.fields.find(name);
  if (at == envelope.fields.end() || at->second.taken.empty()) return 1;
  return *std::min_element(at->second.taken.begin(), at->second.taken.end());
}

int kv_heads_of(const Envelope &envelope, const Problem &p) {
  return std::max(
      {p.num_kv_heads, smallest_taken(envelope, "num_kv_heads"), large_limits().kv_heads});
}

/// Slots for three pages of the smallest size that is taken, in every head.
int room_for_pages(const Envelope &envelope, const Problem &p) {
  const int size =
      std::max(smallest_taken(envelope, "page_size"), smallest_taken(envelope, "level.page_size"));
  return 3 * size * kv_heads_of(envelope, p);
}

/// Slots of so many keys, in whole pages.
int slots_of(const Problem &p, int keys) {
  return (keys + p.page_size - 1) / p.page_size * p.page_size;
}

/// Slots for requests that were empty, where a kernel takes none of those, and for those that a cut
/// would empty: a draw may have more keys than its limits (directed.h).
int room_for_empty(const Envelope &envelope, const Problem &p) {
  const auto at = envelope.fields.find("seq_lens");
  if (at == envelope.fields.end() || at->second.smallest() == 0) return 0;
  int slots = p.batch * slots_of(p, at->second.smallest());
  for (int keys : p.seq_lens)
    slots += slots_of(p, keys);
  return slots * kv_heads_of(envelope, p);
}

/// How many times the heads of the case a kernel needs that takes no fewer. Keys that requests
/// share are worth the slots; other cases get shorter rows.
int more_heads(const Envelope &envelope, const Problem &p) {
  if (p.family != Family::kPaged || p.num_splits == 0 || shared_keys(p) == 0) return 1;
  return std::max(1, smallest_taken(envelope, "num_kv_heads") / p.num_kv_heads);
}

/// Elements of the queries, which a case that was cheap must not have by the million.
int64_t query_elements(const Problem &p) {
  return int64_t{p.batch} * p.q_len * p.num_qo_heads() * p.head_dim;
}

/// For a value of a size that is not taken: the largest below it that is, or, where that value is
/// usual, any usual one, always the same one for the same `seed`.
int other_size(const Envelope::Field &answers, const std::string &name, int value, uint64_t seed) {
  std::vector<int> taken = answers.taken;
  std::sort(taken.begin(), taken.end());
  const int usual = usual_size(name);
  const auto end = std::upper_bound(taken.begin(), taken.end(), std::max(value, usual));
  if (end == taken.begin()) return taken.front();
  if (value > usual) return *(end - 1);
  return taken[hash_values(seed, name.size(), name[0], value) % (end - taken.begin())];
}

} // namespace

std::string ShapeField::label(int value) const {
  const auto at = labels.find(value);
  return at == labels.end() ? std::to_string(value) : at->second;
}

std::vector<ShapeField> shape_fields(Family family) {
  Lister io;
  Problem p = decode_family({}, full_limits(), family);
  p.kv = KvType::kE4m3; // its scales are fields too
  visit_fields(io, p, full_limits());
  return io.found;
}

Problem with_field(Problem p, const std::string &name, int value) {
  return changed(std::move(p), full_limits(),
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
  case FieldKind::kEach: {
    // Between two sizes that were asked about: what both answered.
    const auto asked_below = nearest_asked(at->second, value, -1);
    const auto asked_above = nearest_asked(at->second, value, 1);
    const auto is_taken = [&](std::optional<int> size) {
      return size && std::find(taken.begin(), taken.end(), *size) != taken.end();
    };
    return is_taken(asked_below) && (!asked_above || is_taken(asked_above));
  }
  case FieldKind::kRange:
    return !taken.empty() && value >= at->second.smallest() && value <= at->second.largest();
  case FieldKind::kNoneOrSome:
    return std::any_of(taken.begin(), taken.end(),
                       [&](int one) { return (one < 0) == (value < 0); });
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
  // Sizes follow the draw and the kernel alone; keys and slots keep a draw as cheap as it was.
  Limits wide = full_limits();
  wide.keys = limits.keys;
  wide.slots = std::max(limits.slots * more_heads(*this, p), room_for_pages(*this, p)) +
               room_for_empty(*this, p);
  wide.merge_values = limits.merge_values;
  const uint64_t seed = hash_values(0xf17u, p.q.seed, p.k.seed, p.v.seed, p.schedule.seed);
  const auto moved = [&](const std::string &name, int value) {
    const auto at = fields.find(name);
    if (at == fields.end() || at->second.taken.empty()) return value;
    ShapeField field{.name = name, .kind = kind_of(name), .values = {}, .labels = {}};
    if (takes(field, value)) return value;
    if (field.kind == FieldKind::kRange)
      return std::clamp(value, at->second.smallest(), at->second.largest());
    return other_size(at->second, name, value, seed);
  };
  Problem out = changed(p, wide, moved);
  // A kernel that takes only many heads or wide ones gets fewer requests in the largest batches.
  constexpr int64_t kMostElements = 1 << 23;
  for (Problem fewer = p; is_attention(p) && fewer.batch > large_limits().batch &&
                          query_elements(out) > std::max(kMostElements, query_elements(p));) {
    fewer.batch /= 2;
    out = changed(fewer, wide, moved);
  }
  return problem_error(out, full_limits()).empty() ? out : p;
}

} // namespace assay
