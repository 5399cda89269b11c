#pragma once
// Texts of others (names in archives, values of images, what programs say) made harmless before
// they reach a terminal: a package's name must not move the cursor, set the window's title, or read
// backwards.
#include <string>
#include <string_view>

namespace mlenv {

/// On one line: control characters (C0, DEL, C1), line and paragraph separators, the marks that
/// turn the direction of text (Unicode Bidi_Control), and bytes that are not UTF-8 become `\n`,
/// `\t`, `\x1b`, `\u{202e}`. All else stays as it is, a backslash too.
std::string printable(std::string_view text);
/// The same with line ends and tabs kept.
std::string printable_lines(std::string_view text);
/// The same for JSON, where such characters may only stand in strings: `\u001b`. The value stays
/// the same.
std::string printable_json(std::string_view json);

}  // namespace mlenv
