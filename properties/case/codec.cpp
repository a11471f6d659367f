// SPDX-License-Identifier: Apache-2.0
#include "properties/case/codec.h"

#include <algorithm>
#include <numeric>

#include "properties/case/fields.h"

namespace assay {
namespace {

/// Offset of a value in its range when counting starts at the simplest one.
int to_raw(int value, const Range &r) {
  int size = r.hi - r.lo + 1;
  return ((value - r.simplest) % size + size) % size;
}
int from_raw(int raw, const Range &r) {
  int size = r.hi - r.lo + 1;
  return r.lo + static_cast<int>((static_cast<int64_t>(r.simplest - r.lo) + raw) % size);
}

template <class E>
size_t count_rare(std::span<const EnumName<E>> options) {
  return static_cast<size_t>(
      std::count_if(options.begin(), options.end(), [](const EnumName<E> &o) { return o.rare; }));
}

class Decoder {
public:
  Decoder(std::span<const uint8_t> bytes, const Family *family, int version)
      : bytes_(bytes), family_(family), version_(version) {}

  void integer(const std::string &, int &value, const Range &r) { value = draw(r); }
  void eighths(const std::string &, int &value, const Range &r) { value = draw(r) * 8; }

  void integers(const std::string &, std::vector<int> &values, int count, const Range &r) {
    values.resize(count);
    for (int &value : values)
      value = draw(r);
  }

  template <class E>
  void choice(const std::string &name, E &value, std::span<const EnumName<E>> options) {
    if constexpr (std::is_same_v<E, Family>) {
      if (family_ != nullptr && name == "family") {
        value = *family_;
        return;
      }
    }
    const size_t rare = count_rare(options), common = options.size() - rare;
    const size_t drawn = byte(), first_rare = 256 - rare;
    value = options[drawn < first_rare ? drawn % common : common + drawn - first_rare].value;
  }

  void flag(const std::string &, bool &value) {
    // One in eight: the set flag is the rarer configuration everywhere.
    value = byte() % 8 == 1;
  }

  void added_flag(const std::string &, bool &value, Added added, bool before) {
    value = version_ >= added.since ? is_set(added) : before;
  }

  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added added) {
    if (version_ >= added.since && is_set(added))
      integers(name, values, count, r);
    else
      values.clear();
  }

  /// Four in nine, so that most cases stay plain.
  bool gate(bool) { return byte() % 9 >= 5; }

  bool added_gate(bool present, int since) { return version_ >= since && gate(present); }

  void word(const std::string &, uint32_t &value) {
    value = 0;
    for (int i = 0; i < 4; ++i)
      value |= static_cast<uint32_t>(byte()) << (8 * i);
  }

  void fit(const std::string &, std::vector<int> &lens, int page_size, int &slots) {
    fields::cut_to_slots(lens, page_size, slots);
  }

  void page_ids(Problem &p, int pages, int pool) {
    if (pages > fields::kMaxExplicitPages) {
      p.placement = Placement::kIdentity;
      return;
    }
    std::vector<int> unused(pool);
    std::iota(unused.begin(), unused.end(), 0);
    p.page_ids.clear();
    for (int i = 0; i < pages; ++i) {
      auto at = unused.begin() + byte() % static_cast<int>(unused.size());
      p.page_ids.push_back(*at);
      unused.erase(at);
    }
  }

private:
  int byte() { return next_ < bytes_.size() ? bytes_[next_++] : 0; }
  bool is_set(Added added) { return byte() % added.one_in == 1; }

  /// Two bytes free, or an anchor plus -1, 0, +1: selected by a first byte. Small ranges without
  /// anchors take one byte.
  int draw(const Range &r) {
    if (r.anchors.empty() && r.hi - r.lo < 256) return from_raw(byte(), r);
    int selector = byte();
    if (!r.anchors.empty() && selector % 4 != 0) {
      int anchor = r.anchors[byte() % static_cast<int>(r.anchors.size())];
      return std::clamp(anchor + selector % 4 - 2, r.lo, r.hi);
    }
    int low = byte();
    int mid = byte();
    // Ranges are below 2^17; the selector's upper bits carry the rest.
    return from_raw(low | mid << 8 | (selector >> 2) << 16, r);
  }

  std::span<const uint8_t> bytes_;
  const Family *family_;
  int version_;
  size_t next_ = 0;
};

class Encoder {
public:
  void integer(const std::string &, int &value, const Range &r) { put(value, r); }
  void eighths(const std::string &, int &value, const Range &r) { put(value / 8, r); }
  void integers(const std::string &, std::vector<int> &values, int, const Range &r) {
    for (int value : values)
      put(value, r);
  }
  template <class E>
  void choice(const std::string &, E &value, std::span<const EnumName<E>> options) {
    size_t index = 0;
    while (index + 1 < options.size() && options[index].value != value)
      ++index;
    const bool rare = options[index].rare;
    bytes.push_back(static_cast<uint8_t>(rare ? 256 - options.size() + index : index));
  }
  void flag(const std::string &, bool &value) { bytes.push_back(value ? 1 : 0); }
  void added_flag(const std::string &name, bool &value, Added, bool) { flag(name, value); }
  void added_integers(const std::string &name, std::vector<int> &values, int count, const Range &r,
                      Added) {
    bytes.push_back(values.empty() ? 0 : 1);
    integers(name, values, count, r);
  }
  bool gate(bool present) {
    bytes.push_back(present ? 8 : 0);
    return present;
  }
  bool added_gate(bool present, int) { return gate(present); }
  void word(const std::string &, uint32_t &value) {
    for (int i = 0; i < 4; ++i)
      bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void fit(const std::string &, std::vector<int> &lens, int page_size, int &slots) {
    fields::cut_to_slots(lens, page_size, slots);
  }
  void page_ids(Problem &p, int, int pool) {
    std::vector<int> unused(pool);
    std::iota(unused.begin(), unused.end(), 0);
    for (int id : p.page_ids) {
      auto at = std::find(unused.begin(), unused.end(), id);
      if (at == unused.end()) return;
      bytes.push_back(static_cast<uint8_t>(at - unused.begin()));
      unused.erase(at);
    }
  }

  Bytes bytes;

private:
  void put(int value, const Range &r) {
    int raw = to_raw(value, r);
    if (r.anchors.empty() && r.hi - r.lo < 256) {
      bytes.push_back(static_cast<uint8_t>(raw));
      return;
    }
    bytes.push_back(static_cast<uint8_t>((raw >> 16) << 2));
    bytes.push_back(static_cast<uint8_t>(raw));
    bytes.push_back(static_cast<uint8_t>(raw >> 8));
  }
};

Problem decode_with(std::span<const uint8_t> bytes, const Limits &limits, const Family *family) {
  Problem p;
  const bool older = family == nullptr && !bytes.empty() && bytes[0] >= 1;
  const int version = older ? std::min(bytes[0], kCodecVersion) : kCodecVersion;
  Decoder io(bytes.empty() ? bytes : bytes.subspan(1), family, version);
  visit_fields(io, p, limits);
  return p;
}

} // namespace

Problem decode(std::span<const uint8_t> bytes, const Limits &limits) {
  return decode_with(bytes, limits, nullptr);
}

Problem decode_family(std::span<const uint8_t> bytes, const Limits &limits, Family family) {
  return decode_with(bytes, limits, &family);
}

Bytes encode(const Problem &p, const Limits &limits) {
  Encoder io;
  io.bytes.push_back(kCodecVersion);
  Problem copy = p;
  visit_fields(io, copy, limits);
  return std::move(io.bytes);
}

} // namespace assay
