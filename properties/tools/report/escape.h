// SPDX-License-Identifier: Apache-2.0
// Foreign text inside other languages. The input is valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace assay::report {

/// As text or in a quoted attribute of HTML or XML. Characters that XML cannot hold, and marks that
/// turn the direction of text, become U+FFFD.
std::string markup(std::string_view text);

/// A code span of Markdown, also inside a table: no markup, link or mention in it is alive.
std::string code_span(std::string_view text);

/// A fenced block of Markdown that the text cannot end.
std::string code_block(std::string_view text);

/// A path as the reference of a URI; absolute ones become file:///...
std::string file_uri(std::string_view path);

} // namespace assay::report
