// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cases/edit_case.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "properties/case/codec.h"
#include "properties/case/fields.h"
#include "properties/case/rng.h"

namespace assay::fuzz {
namespace {

/// One choice of a case. Of a list of options: the number of one.
struct Choice {
  const std::string &name;
  int index; ///< in a list of numbers
  int64_t now, low, high;
  std::span<const int> anchors;
};

/// Visits the choices of a case in order and sets each to change(Choice), cut to its range.
template <class Change>
class Editor {
public:
  explicit Editor(Change change) : change_(std::move(change)) {}

  void integer(const std::string &name, int &value, const Range &r) {
    value = ask(name, 0, value, r);
  }
  void eighths(const std::string &name, int &value, const Range &r) {
    value = ask(name, 0, value / 8, r) * 8;
  }
  void integers(const std::string &name, std::vector<int> &values, int count, const Range &r) {
    values.resize(static_cast<size_t>(count), r.simplest);
    for (int i = 0; i < count; ++i)
      values[i] = ask(name, i, values[i], r);
  }
  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>> options) {
    if constexpr (std::is_same_v<E, Family>) return;
    const int last = static_cast<int>(options.size()) - 1;
    int now = 0;
    while (now < last && options[now].value != value)
      ++now;
    value = options[ask(name, 0, now, Range{0, last, 0})].value;
  }
  void flag(const std::string &name, bool &value) {
    value = ask(name, 0, value, Range{0, 1, 0}) != 0;
  }
  void added_flag(const std::string &name, bool &value, Added, bool) { flag(name, value); }
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    bool given = !values.empty();
    flag(name + ".given", given); // apart from the list's first value
    if (!given) return values.clear();
    integers(name, values, count, r);
  }
  void word(const std::string &name, uint32_t &value) {
    value = static_cast<uint32_t>(change_(Choice{name, 0, value, 0, UINT32_MAX, {}}));
  }
  void fit(const std::string &, std::vector<int> &lens, int page_size, int &slots) {
    fields::cut_to_slots(lens, page_size, slots);
  }
  bool gate(bool) { return true; }
  bool added_gate(bool, int) { return true; }
  /// Ids stay where they can; the choice is one of two places to exchange.
  void page_ids(Problem &p, int pages, int pool) {
    if (pages > fields::kMaxExplicitPages) {
      p.placement = Placement::kIdentity;
      p.page_ids.clear();
      return;
    }
    std::vector<int> unused(static_cast<size_t>(pool));
    std::iota(unused.begin(), unused.end(), 0);
    std::vector<int> ids = std::exchange(p.page_ids, {});
    ids.resize(static_cast<size_t>(pages), -1);
    for (const int id : ids) {
      auto at = std::find(unused.begin(), unused.end(), id);
      if (at == unused.end()) at = unused.begin();
      p.page_ids.push_back(*at);
      unused.erase(at);
    }
    if (pages == 0) return;
    static const std::string kName = "page_ids";
    const int pair = ask(kName, 0, 0, Range{0, pages * pages - 1, 0});
    std::swap(p.page_ids[pair % pages], p.page_ids[pair / pages]);
  }

private:
  int ask(const std::string &name, int index, int64_t now, const Range &r) {
    const Choice at{name, index, std::clamp<int64_t>(now, r.lo, r.hi), r.lo, r.hi, r.anchors};
    return static_cast<int>(std::clamp<int64_t>(change_(at), r.lo, r.hi));
  }

  Change change_;
};

template <class Change>
Problem edited(Problem p, const Limits &limits, Change change) {
  Editor<Change> io(std::move(change));
  visit_fields(io, p, limits);
  return decode(encode(p, limits), limits); // without what a changed choice has made meaningless
}

int64_t another(const Choice &at, Rng &rng) {
  const int64_t size = at.high - at.low + 1;
  const auto any = [&] {
    const int64_t random = int64_t{rng.upto(0xffff)} << 16 | rng.upto(0xffff);
    return at.low + random % size;
  };
  if (size <= 8)
    return at.low + (at.now - at.low + rng.between(1, static_cast<int>(size) - 1)) % size;
  switch (rng.upto(at.anchors.empty() ? 5 : 8)) {
  case 0:
    return rng.upto(1) == 0 ? at.low : at.high;
  case 1:
    return at.now + (rng.upto(1) == 0 ? 1 : -1);
  case 2:
    return rng.upto(1) == 0 ? at.now * 2 : at.now / 2;
  case 3:
    return at.low + rng.upto(2);
  case 4:
  case 5:
    return any();
  default:
    return at.anchors[rng.upto(static_cast<int>(at.anchors.size()) - 1)] + rng.between(-1, 1);
  }
}

} // namespace

Problem mutated(const Problem &p, const Limits &limits, uint64_t seed) {
  int choices = 0;
  edited(p, limits, [&](const Choice &at) {
    if (at.low < at.high) ++choices;
    return at.now;
  });
  Rng rng(seed);
  constexpr int kTimes[] = {1, 1, 1, 2, 2, 3, 4, 16};
  Problem out = p;
  for (int left = kTimes[rng.upto(7)]; left > 0; --left) {
    const int chosen = rng.upto(choices - 1);
    int next = 0;
    out = edited(out, limits, [&](const Choice &at) {
      if (at.low == at.high || next++ != chosen) return at.now;
      return another(at, rng);
    });
  }
  return out;
}

Problem crossed(const Problem &a, const Problem &b, const Limits &limits, uint64_t seed) {
  std::map<std::pair<std::string, int>, int64_t> other;
  edited(b, limits, [&](const Choice &at) {
    other[{at.name, at.index}] = at.now;
    return at.now;
  });
  Rng rng(seed);
  const bool from_one_on = rng.upto(1) == 0;
  const int first = rng.upto(static_cast<int>(other.size()));
  int next = 0;
  return edited(a, limits, [&](const Choice &at) {
    const bool taken = from_one_on ? next++ >= first : rng.upto(2) == 0;
    const auto found = other.find({at.name, at.index});
    return taken && found != other.end() ? found->second : at.now;
  });
}

} // namespace assay::fuzz
