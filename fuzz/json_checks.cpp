// SPDX-License-Identifier: Apache-2.0
#include "fuzz/json_checks.h"

#include <array>
#include <functional>

#include <nlohmann/json.hpp>

#include "fuzz/byte_reader.h"
#include "properties/call/materialise.h"
#include "properties/case/codec.h"
#include "properties/cli/session/streams.h"
#include "properties/tools/gate/error.h"

namespace assay::fuzz {
namespace {

std::string check_words(const std::string &what, const std::string &words) {
  if (words.empty()) return what + ": a refusal without words";
  for (const char c : words)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      return what + ": control characters in: " + words;
  return "";
}

/// What `read` says where it takes the text; its refusals are checked, anything else is wrong.
template <class Refusal>
std::string judged(const std::string &what, const std::function<std::string()> &read) {
  try {
    return read();
  } catch (const Refusal &refusal) {
    if constexpr (requires { refusal.code; })
      if (refusal.code != kExitUsage && refusal.code != kExitUnsupported)
        return what + ": exit code " + std::to_string(refusal.code) + " for a bad file";
    return check_words(what, refusal.what());
  } catch (const std::exception &e) {
    return what + ": an internal error: " + e.what();
  }
}

std::string check_cells(const ReadersUnderTest &readers, const std::string &text) {
  return judged<std::invalid_argument>("cells", [&]() -> std::string {
    const nlohmann::json once = bench::cells_to_json(readers.cells(text, "file"));
    const nlohmann::json twice = bench::cells_to_json(readers.cells(once.dump(), "file"));
    return once == twice ? "" : "cells change once written: " + once.dump();
  });
}

/// A table of one kernel that runs nowhere.
const assay_plugin &table() {
  static const assay_kernel kernel = [] {
    assay_kernel k{};
    k.struct_size = sizeof k;
    k.name = "k";
    k.target = ASSAY_TARGET_SIMT;
    return k;
  }();
  static const assay_plugin plugin = [] {
    assay_plugin p{};
    p.struct_size = sizeof p;
    p.name = "p";
    p.num_kernels = 1;
    p.kernels = &kernel;
    return p;
  }();
  return plugin;
}

nlohmann::json declared(const ReadersUnderTest &readers, const std::string &text) {
  HeldPlugin held;
  readers.declaration(table(), text, "file", held);
  return {
      {"kernels",
       {{{"name", "k"}, {"target", "simt"}, {"declaration", declaration_json(held.kernels[0])}}}}};
}

std::string check_declaration(const ReadersUnderTest &readers, const std::string &text) {
  return judged<CliError>("declaration", [&]() -> std::string {
    const nlohmann::json once = declared(readers, text);
    static const nlohmann::json own = declared({}, "{\"kernels\": []}");
    if (once == own) return ""; // other kernels have one; a table of zeros bounds nothing
    return declared(readers, once.dump()) == once
               ? ""
               : "a declaration changes once written: " + once.dump();
  });
}

std::string check_hello(const ReadersUnderTest &readers, const std::string &text) {
  return judged<CliError>("hello", [&]() -> std::string {
    const auto held = readers.hello("worker", text);
    for (const assay_kernel &kernel : held->kernels)
      if (kernel.run == nullptr || kernel.name == nullptr)
        return "hello: a kernel without a name or a call";
    return "";
  });
}

std::string check_project(const ReadersUnderTest &readers, const std::string &text) {
  return judged<gate::GateError>("project", [&]() -> std::string {
    const gate::Project project = readers.project(text, "assay.toml");
    return project.command.empty() || project.library.empty() ? "project: nothing to build" : "";
  });
}

std::string check_log(const ReadersUnderTest &readers, const std::string &text) {
  const campaign::FuzzLog log = readers.log(text);
  if (!log.artifact.empty() && log.message.empty()) return "log: a finding without a message";
  return log.artifact.find('\n') == std::string::npos ? "" : "log: the name of an input has lines";
}

std::string check_reply(const ReadersUnderTest &readers, Input bytes) {
  static const Tensors sent = materialise(decode({}, fuzz_limits()));
  Tensors t = sent;
  RunResult result;
  if (readers.reply(std::as_bytes(bytes), result, t)) {
    for (size_t i = 0; i < t.buffers.size(); ++i)
      if (t.buffers[i].bytes.size() != sent.buffers[i].bytes.size())
        return "reply: a buffer of another size";
    return "";
  }
  for (size_t i = 0; i < t.buffers.size(); ++i)
    if (t.buffers[i].bytes != sent.buffers[i].bytes) return "reply: refused, and a buffer changed";
  return "";
}

} // namespace

std::string check_json_with(const ReadersUnderTest &readers, Input input) {
  ByteReader in(input);
  const int reader = in.byte() % 6;
  const Input rest = in.rest();
  const std::string text(reinterpret_cast<const char *>(rest.data()), rest.size());
  switch (reader) {
  case 0:
    return check_cells(readers, text);
  case 1:
    return check_declaration(readers, text);
  case 2:
    return check_hello(readers, text);
  case 3:
    return check_project(readers, text);
  case 4:
    return check_log(readers, text);
  default:
    return check_reply(readers, rest);
  }
}

} // namespace assay::fuzz
