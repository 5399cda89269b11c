#include "recipes/resolve/pylock.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kUvFailed = "uv-failed";

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    const int high = escape ? hex_value(text[i + 1]) : -1;
    const int low = escape ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string file_of_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  return percent_decoded(url.substr(url.rfind('/') + 1));
}

PylockWheel read_wheel(const TomlReader& reader, const TomlValue& table, const fs::path& folder) {
  if (table.kind != TomlKind::table) reader.fail(table, "a wheel is a table");
  PylockWheel wheel;
  wheel.url = reader.optional_text(table, "url");
  if (wheel.url.empty()) {
    const fs::path path = folder / reader.text(table, "path");
    wheel.url = "file://" + path.lexically_normal().string();
  }
  wheel.file = reader.optional_text(table, "name");
  if (wheel.file.empty()) wheel.file = file_of_url(wheel.url);
  if (!is_clean_relative_path(wheel.file) || wheel.file.find('/') != std::string::npos) {
    reader.fail(table, "a wheel has no proper file name");
  }
  if (table.find("size") != nullptr) wheel.size_bytes = reader.size(table, "size");
  const TomlValue* hashes = reader.optional_member(table, "hashes", TomlKind::table);
  if (hashes != nullptr && hashes->find("sha256") != nullptr) {
    wheel.digest = Digest::from_hex(reader.text(*hashes, "sha256"));
  }
  return wheel;
}

}  // namespace

const PylockPackage* find_pylock_package(const PylockPackages& packages, const std::string& name) {
  const auto found = std::find_if(packages.begin(), packages.end(),
                                  [&](const PylockPackage& one) { return one.name == name; });
  return found == packages.end() ? nullptr : &*found;
}

std::vector<PylockPackage> parse_pylock(std::string_view text, const fs::path& folder) {
  const TomlReader reader({.shown_path = folder / "pylock.toml",
                           .text = std::string(text),
                           .code = std::string(kUvFailed),
                           .hint = {}});
  const TomlValue root = parse_toml(reader.file());
  if (!reader.text(root, "lock-version").starts_with("1.")) {
    reader.fail(*root.find("lock-version"), "this version of pylock.toml is not known");
  }
  std::vector<PylockPackage> packages;
  const TomlValue* all = reader.optional_member(root, "packages", TomlKind::list);
  if (all == nullptr) return packages;
  for (const TomlValue& one : all->items) {
    if (one.kind != TomlKind::table) reader.fail(one, "a package is a table");
    PylockPackage package;
    package.name = normalise_wheel_name(reader.text(one, "name"));
    package.version = reader.optional_text(one, "version");
    if (const TomlValue* wheels = reader.optional_member(one, "wheels", TomlKind::list)) {
      for (const TomlValue& wheel : wheels->items) {
        package.wheels.push_back(read_wheel(reader, wheel, folder));
      }
    }
    if (const TomlValue* source = reader.optional_member(one, "sdist", TomlKind::table)) {
      const PylockWheel read = read_wheel(reader, *source, folder);
      package.source = PylockSource{read.file, read.url, read.digest, read.size_bytes};
    }
    for (const char* key : {"sdist", "vcs", "directory", "archive"}) {
      package.has_source = package.has_source || one.find(key) != nullptr;
    }
    packages.push_back(std::move(package));
  }
  return packages;
}

std::string render_preferences(const std::vector<std::pair<std::string, std::string>>& versions) {
  std::string out = "lock-version = \"1.0\"\ncreated-by = \"mlenv\"\n";
  for (const auto& [name, version] : versions) {
    out += fmt::format("\n[[packages]]\nname = {}\nversion = {}\n", toml_text(name),
                       toml_text(version));
  }
  return out;
}

}  // namespace mlenv
