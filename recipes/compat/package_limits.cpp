#include "recipes/compat/package_limits.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/compat/cuda_table.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr int kPackageLimitsFormat = 1;
constexpr std::string_view kPython = "python";

class LimitReader {
 public:
  explicit LimitReader(TomlReader reader) : reader_(std::move(reader)) {}

  PackageLimits read() {
    const TomlValue root = parse_toml(reader_.file());
    constexpr std::array<std::string_view, 4> kKeys = {"format", "date", "limits", "sources"};
    reader_.only(root, kKeys);
    if (reader_.member(root, "format", TomlKind::integer).integer != kPackageLimitsFormat) {
      reader_.fail(root, fmt::format("this mlenv reads format {}", kPackageLimitsFormat));
    }
    found_.date = date(root, "date");
    const TomlValue& sources = reader_.member(root, "sources", TomlKind::table);
    for (const auto& [name, value] : sources.members) {
      found_.sources.emplace(name, reader_.text(sources, name));
    }
    for (const TomlValue& row : reader_.member(root, "limits", TomlKind::list).items) limit(row);
    return std::move(found_);
  }

 private:
  std::string date(const TomlValue& table, const std::string& key) const {
    const std::string& text = reader_.text(table, key);
    if (!is_date(text)) reader_.fail(*table.find(key), fmt::format("`{}` is a date", key));
    return text;
  }

  void limit(const TomlValue& row) {
    if (row.kind != TomlKind::table) reader_.fail(row, "a row is a table");
    constexpr std::array<std::string_view, 8> kKeys = {"packages",  "from", "before", "other",
                                                       "specifier", "why",  "source", "read"};
    reader_.only(row, kKeys);
    PackageLimit made;
    made.packages = reader_.texts(row, "packages");
    made.from = reader_.optional_text(row, "from");
    made.before = reader_.text(row, "before");
    made.other = reader_.text(row, "other");
    made.specifier = reader_.text(row, "specifier");
    made.why = reader_.text(row, "why");
    made.source = reader_.text(row, "source");
    made.read = date(row, "read");
    if (made.packages.empty()) reader_.fail(row, "`packages` names none");
    if (!made.from.empty() && !is_older(made.from, made.before)) {
      reader_.fail(row, "`from` is older than `before`");
    }
    const auto read = parse_requirement(made.requirement());
    const auto* parsed = std::get_if<Requirement>(&read);
    if (parsed == nullptr || parsed->specifier.empty() || parsed->name != made.other) {
      reader_.fail(row, fmt::format("`{}` is no requirement", made.requirement()));
    }
    if (!found_.sources.contains(made.source)) {
      reader_.fail(*row.find("source"), fmt::format("`{}` is none of `sources`", made.source));
    }
    if (made.read > found_.date) reader_.fail(*row.find("read"), "the row is newer than `date`");
    found_.limits.push_back(std::move(made));
  }

  TomlReader reader_;
  PackageLimits found_;
};

}  // namespace

bool PackageLimit::holds_for(std::string_view package, std::string_view version) const {
  return std::find(packages.begin(), packages.end(), package) != packages.end() &&
         is_older(version, before) && (from.empty() || !is_older(version, from));
}

PackageLimits parse_package_limits(std::string_view text, const fs::path& shown_path) {
  return LimitReader(
             TomlReader({shown_path, std::string(text), "bug", "this table is mlenv's own"}))
      .read();
}

const PackageLimits& package_limits() {
  static const PackageLimits limits =
      parse_package_limits(package_limits_data(), "package_limits.toml");
  return limits;
}

bool has_wheels_for_python(std::string_view package, std::string_view version,
                           std::string_view python) {
  const std::vector<PackageLimit>& all = package_limits().limits;
  return std::none_of(all.begin(), all.end(), [&](const PackageLimit& one) {
    return one.other == kPython && one.holds_for(package, version) &&
           !version_satisfies(python, one.specifier);
  });
}

}  // namespace mlenv
