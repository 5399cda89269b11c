#pragma once
// Debian control files (deb822(5)): stanzas of `Name: value` fields, continued by indented lines.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// Where dpkg keeps the stanzas of what is installed, below the root.
inline constexpr std::string_view kDpkgStatus = "var/lib/dpkg/status";

/// Views into the text they were cut from.
class ControlStanza {
 public:
  explicit ControlStanza(std::string_view text) : text_(text) {}
  std::string_view text() const { return text_; }
  /// Calls `take` with each field in order; the value without surrounding blanks, its continuation
  /// lines (and line ends between them) as they are. Lines that are no field are passed over.
  void each(const std::function<void(std::string_view name, std::string_view value)>& take) const;
  /// First field of that name, letter case ignored; empty when absent.
  std::string_view field(std::string_view name) const;

 private:
  std::string_view text_;
};

/// Calls `take` with each stanza that holds anything; blank lines separate them.
void each_stanza(std::string_view text, const std::function<void(ControlStanza)>& take);

/// Calls `take` with each word between blanks and line ends.
void each_word(std::string_view text, const std::function<void(std::string_view)>& take);
std::vector<std::string> word_list(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace mlenv
