#pragma once
// TOML text as a tree of values with their places. The only file that knows toml++ is toml.cpp.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

struct TomlValue {
  enum class Kind { text, integer, boolean, list, table, other };
  Kind kind = Kind::other;  ///< `other`: floats, dates and times
  std::string text;
  std::int64_t integer = 0;
  bool boolean = false;
  std::vector<TomlValue> items;
  std::map<std::string, TomlValue> members;
  int line = 0;  ///< 1-based
  int column = 0;

  /// Null when there is no such member.
  const TomlValue* find(const std::string& key) const;

  // Of other tools' files, which say things in several ways: what is of another kind is not there.
  /// Null when there is no table of that name.
  const TomlValue* table(const std::string& key) const;
  /// Empty when there is no text of that name.
  std::string text_of(const std::string& key) const;
  /// The texts among the items of a list of that name.
  std::vector<std::string> texts_of(const std::string& key) const;
  /// Whether it says `true`.
  bool is_set(const std::string& key) const;
};

using TomlKind = TomlValue::Kind;

/// A file that is read, and what is said of its mistakes.
struct TomlFile {
  fs::path shown_path;
  std::string text;
  std::string code;  ///< of the usage error
  std::string hint;

  /// `file:line:col: message` with the line and a caret.
  Error mistake(int line, int column, std::string_view message) const;
};

/// Throws a mistake of the file for text that is no TOML 1.0. A merge conflict that git left in it
/// is named.
TomlValue parse_toml(const TomlFile& file);

/// A quoted basic string.
std::string toml_text(std::string_view text);
/// A list of such strings, in one line.
std::string toml_list(const std::vector<std::string>& texts);
/// A key, quoted where it must be.
std::string toml_key(std::string_view key);

/// Strict reading of tables: every getter names what is wrong and where, as a mistake of the file.
class TomlReader {
 public:
  explicit TomlReader(TomlFile file) : file_(std::move(file)) {}

  const TomlFile& file() const { return file_; }

  [[noreturn]] void fail(const TomlValue& at, std::string_view message) const;
  /// Unknown keys are mistakes unless `tolerant`.
  void only(const TomlValue& table, std::span<const std::string_view> keys) const;
  void set_tolerant(bool tolerant) { tolerant_ = tolerant; }

  const TomlValue& member(const TomlValue& table, const std::string& key,
                          TomlValue::Kind kind) const;
  /// Null when absent; a wrong kind is a mistake.
  const TomlValue* optional_member(const TomlValue& table, const std::string& key,
                                   TomlValue::Kind kind) const;
  /// No control characters, at most 4096 bytes.
  const std::string& text(const TomlValue& table, const std::string& key) const;
  std::string optional_text(const TomlValue& table, const std::string& key) const;
  /// At least 0.
  std::uint64_t size(const TomlValue& table, const std::string& key) const;
  std::vector<std::string> texts(const TomlValue& table, const std::string& key) const;
  bool optional_flag(const TomlValue& table, const std::string& key, bool otherwise) const;

 private:
  TomlFile file_;
  bool tolerant_ = false;
};

}  // namespace mlenv
