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
};

/// Throws usage error `code` with `file:line:col` for text that is no TOML 1.0.
TomlValue parse_toml(std::string_view text, const fs::path& shown_path, std::string_view code);

/// A quoted basic string.
std::string toml_text(std::string_view text);
/// A key, quoted where it must be.
std::string toml_key(std::string_view key);

/// Strict reading of tables: every getter names what is wrong and where, as usage error `code`.
class TomlReader {
 public:
  TomlReader(fs::path shown_path, std::string code)
      : path_(std::move(shown_path)), code_(std::move(code)) {}

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
  fs::path path_;
  std::string code_;
  bool tolerant_ = false;
};

}  // namespace mlenv
