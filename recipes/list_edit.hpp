#pragma once
// Edits of one list in a YAML text, where the list stands: `[a, b]`, or a line an item, or no list
// yet; and of one text. All bytes that are not of the item stay as they are.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "recipes/yaml.hpp"

namespace mlenv {

/// The list of texts, or the text, at a key of the topmost map. Each edit answers with the new
/// text; nullopt where the text is laid out in a way that it does not know. What it gives is to be
/// parsed and compared: that, not this, is the proof. The text must be one that parse_yaml takes
/// whole.
class ListEdit {
 public:
  ListEdit(std::string_view text, std::string_view key);
  ListEdit(const ListEdit&) = delete;
  ListEdit& operator=(const ListEdit&) = delete;
  ~ListEdit() = default;

  /// Behind the last item. Without the key, it is added below the comment that shows it
  /// (`# KEY:` and its lines), else behind the last of `anchors` that is there.
  std::optional<std::string> append(std::string_view item,
                                    std::span<const std::string_view> anchors) const;
  /// In the item's quotes, when it has some.
  std::optional<std::string> replace(std::size_t at, std::string_view item) const;
  /// With its comma, or its line; the list stays, if empty.
  std::optional<std::string> remove(std::size_t at) const;

  /// The text itself: in the quotes that it has, else plain or in `"`. A key that is not there is
  /// added as by `append`.
  std::optional<std::string> set(std::string_view text,
                                 std::span<const std::string_view> anchors) const;
  /// The key with all that belongs to it: its lines. It must be there.
  std::optional<std::string> remove_key() const;

 private:
  /// Bytes [from, to) of the text.
  struct Extent {
    std::size_t from = 0;
    std::size_t to = 0;
  };
  using Edited = std::optional<std::string>;

  std::size_t offset(const YamlNode& node) const;
  std::optional<Extent> extent(const YamlNode& scalar) const;
  /// The same with the text on its line in front of it, which must be blanks and a `-`.
  std::optional<Extent> block_item(const YamlNode& item) const;
  std::optional<std::size_t> end_of_value(const YamlNode& node) const;
  std::size_t closing_bracket(std::size_t open) const;
  std::size_t start_of_line(std::size_t at) const;
  std::size_t end_of_line(std::size_t at) const;
  std::size_t skip_blanks(std::size_t at) const;
  std::size_t after_comma(std::size_t at) const;
  std::string_view between(std::size_t from, std::size_t to) const;
  bool only_comment_follows(std::size_t at) const;
  bool starts_its_line(std::size_t at) const;
  bool in_flow(const YamlNode& node) const;
  bool map_in_flow() const;
  std::string line_end() const;
  std::string with(std::size_t from, std::size_t to, std::string_view middle) const;

  Edited append_flow(std::string_view item) const;
  Edited append_block(std::string_view item) const;
  Edited fill(std::string_view item) const;
  /// `value` as it is to stand behind the colon.
  Edited add_key(std::string_view value, std::span<const std::string_view> anchors) const;
  Edited remove_flow(std::size_t at) const;
  Edited remove_block(std::size_t at) const;
  std::size_t end_of_member(std::size_t index) const;
  std::optional<std::size_t> end_of_shown(std::string_view indentation) const;

  std::string mark_;  ///< byte order mark, if any
  std::string text_;  ///< without it
  std::string key_;
  YamlDocument document_;
  const YamlMember* member_ = nullptr;  ///< of `key_`; null without one
};

}  // namespace mlenv
