#include "recipes/lock_sources.hpp"

#include <algorithm>
#include <array>

#include "recipes/lock_format.hpp"
#include "recipes/package_address.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class SourceReader {
 public:
  SourceReader(const TomlReader& reader, const TomlValue& table) : reader_(reader), table_(table) {}

  LockedSource read(std::string version) const {
    constexpr std::array<std::string_view, 13> kKeys = {
        "name", "version",   "file",   "size",         "sha256", "built-with", "git",
        "path", "reference", "commit", "subdirectory", "url",    "describe"};
    reader_.only(table_, kKeys);
    LockedSource source{.name = reader_.text(table_, "name"),
                        .version = std::move(version),
                        .file = reader_.optional_text(table_, "file"),
                        .size_bytes = 0,
                        .digest = read_digest(reader_, table_, "sha256"),
                        .built_with = reader_.texts(table_, "built-with"),
                        .git = address("git", AddressKind::git),
                        .path = address("path", AddressKind::path),
                        .url = address("url", AddressKind::url),
                        .reference = reader_.optional_text(table_, "reference"),
                        .commit = reader_.optional_text(table_, "commit"),
                        .subdirectory = reader_.optional_text(table_, "subdirectory"),
                        .describe = reader_.optional_text(table_, "describe")};
    std::sort(source.built_with.begin(), source.built_with.end());
    check_file(source);
    check_address(source);
    return source;
  }

 private:
  [[noreturn]] void fail(const char* key, const std::string& message) const {
    const TomlValue* at = table_.find(key);
    reader_.fail(at == nullptr ? table_ : *at, message);
  }

  /// An address is written as a recipe's would be, without what has keys of its own.
  std::string address(const char* key, AddressKind kind) const {
    std::string text = reader_.optional_text(table_, key);
    if (text.empty()) return text;
    const auto read = parse_package_address((kind == AddressKind::git ? "git+" : "") + text);
    const auto* good = std::get_if<PackageAddress>(&read);
    if (good == nullptr || good->kind != kind || good->place != text) {
      fail(key, fmt::format("{} is not an address that a recipe could name", toml_text(text)));
    }
    return text;
  }

  void check_file(LockedSource& source) const {
    const bool tree = !source.git.empty() || (!source.path.empty() && source.file.empty());
    if (tree) {
      if (!source.file.empty()) fail("file", "a repository is no file");
      if (table_.find("size") != nullptr) fail("size", "a folder has no size");
      return;
    }
    source.file = reader_.text(table_, "file");
    source.size_bytes = reader_.size(table_, "size");
    if (!is_clean_relative_path(source.file) || source.file.find('/') != std::string::npos) {
      fail("file", "a file has a plain name");
    }
  }

  void check_address(const LockedSource& source) const {
    const auto count = static_cast<int>(!source.git.empty()) +
                       static_cast<int>(!source.path.empty()) +
                       static_cast<int>(!source.url.empty());
    if (count > 1) reader_.fail(table_, "a source has one of `git`, `path` and `url`");
    const bool commit = source.commit.size() == 40 &&
                        source.commit.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (source.git.empty() &&
        !(source.commit.empty() && source.reference.empty() && source.describe.empty())) {
      fail("commit", "`commit`, `reference` and `describe` are of `git`");
    }
    if (!source.git.empty() && !commit) fail("commit", "`commit` is 40 lower-case hex digits");
    if (source.subdirectory.empty()) return;
    if (count == 0 || !is_clean_relative_path(source.subdirectory)) {
      fail("subdirectory", "`subdirectory` is a path in the source");
    }
  }

  const TomlReader& reader_;
  const TomlValue& table_;
};

std::string row(const LockedSource& source) {
  std::string text = fmt::format("  {{ name = {}, version = {}", toml_text(source.name),
                                 toml_text(source.version));
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format(", {} = {}", key, toml_text(value));
  };
  add("git", source.git);
  add("path", source.path);
  add("url", source.url);
  add("reference", source.reference);
  add("commit", source.commit);
  add("subdirectory", source.subdirectory);
  add("describe", source.describe);
  add("file", source.file);
  if (!source.file.empty()) text += fmt::format(", size = {}", source.size_bytes);
  return text + fmt::format(", sha256 = \"{}\", built-with = {} }},\n", source.digest.hex(),
                            toml_list(source.built_with));
}

}  // namespace

std::string LockedSource::shown() const {
  if (!git.empty()) return fmt::format("{} at {}", git, commit.substr(0, 12));
  return path.empty() ? file : path;
}

LockedSource read_source(const TomlReader& reader, const TomlValue& table, std::string version) {
  if (table.kind != TomlKind::table) reader.fail(table, "a source is a table in one line");
  return SourceReader(reader, table).read(std::move(version));
}

std::string render_sources(const std::vector<LockedSource>& sources) {
  if (sources.empty()) return {};
  std::string text = "sources = [\n";
  for (const LockedSource& one : sources) text += row(one);
  return text + "]\n";
}

}  // namespace mlenv
