#pragma once
// What the readers of pyproject.toml, pylock.toml and uv.lock share.
#include <memory>
#include <string>
#include <string_view>

#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

class ListedToml {
 public:
  explicit ListedToml(std::shared_ptr<const RequirementsText> file);

  const TomlReader& reader() const { return reader_; }
  const TomlValue& root() const { return root_; }

  ListedText listed(const TomlValue& at, std::string text) const;
  /// A text that is a requirement; its mistakes at their place in it.
  Requirement requirement(const TomlValue& at) const;
  /// An address that a file says in other words; `text` as parse_package_address reads it, a path
  /// from the folder that the file is in (`folder`, from the recipe's). Mistakes are at `at`.
  std::string address(const TomlValue& at, const std::string& text, std::string_view folder) const;
  /// `requires-python` of `table`, where it has one.
  void add_python(const TomlValue& table, RequirementLists& lists) const;
  /// `version` of a package: one release, no set of them.
  const std::string& exact_version(const TomlValue& package) const;
  /// `sha256:` and hex digits; nullopt for another algorithm.
  std::optional<std::string> sha256(const TomlValue& at, std::string_view text) const;
  /// For a package whose files have hashes, none of them `sha256`: nothing could be checked.
  [[noreturn]] void fail_without_sha256(const TomlValue& at, std::string_view name) const;

 private:
  std::shared_ptr<const RequirementsText> file_;
  TomlReader reader_;
  TomlValue root_;
};

/// The address as it is, or a path less its way from `folder`.
std::string address_from(std::string_view folder, const std::string& address);

/// `(a) and (b)`; either may be empty.
std::string both_markers(const std::string& a, const std::string& b);

}  // namespace mlenv
