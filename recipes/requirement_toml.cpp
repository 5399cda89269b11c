#include "recipes/requirement_toml.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/package_address.hpp"
#include "recipes/text.hpp"

namespace mlenv {

ListedToml::ListedToml(std::shared_ptr<const RequirementsText> file)
    : file_(std::move(file)),
      reader_({.shown_path = file_->shown_path,
               .text = file_->text,
               .code = "requirements-invalid",
               .hint = {}}),
      root_(parse_toml(reader_.file())) {}

ListedText ListedToml::listed(const TomlValue& at, std::string text) const {
  return {std::move(text), file_, std::max(at.line, 1), std::max(at.column, 1)};
}

Requirement ListedToml::requirement(const TomlValue& at) const {
  if (at.kind != TomlValue::Kind::text) reader_.fail(at, "a requirement is a text");
  auto read = parse_requirement(at.text);
  if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
    TomlValue inside = at;  // after the quote
    inside.column += 1 + static_cast<int>(utf8_length(at.text.substr(0, wrong->offset)));
    reader_.fail(inside, wrong->message);
  }
  return std::get<Requirement>(std::move(read));
}

std::string ListedToml::address(const TomlValue& at, const std::string& text,
                                std::string_view folder) const {
  const auto read = parse_package_address(text);
  if (const auto* wrong = std::get_if<AddressMistake>(&read)) reader_.fail(at, wrong->message);
  return address_from(folder, std::get<PackageAddress>(read).str());
}

std::string address_from(std::string_view folder, const std::string& address) {
  auto read = std::get<PackageAddress>(parse_package_address(address));
  if (read.kind != PackageAddress::Kind::path) return address;
  read.place = clean_address_path(folder, read.place);
  return read.str();
}

void ListedToml::add_python(const TomlValue& table, RequirementLists& lists) const {
  const std::string text = reader_.optional_text(table, "requires-python");
  if (trim(text).empty()) return;
  const TomlValue& at = *table.find("requires-python");
  const auto read = parse_requirement("python" + text);
  const auto* one = std::get_if<Requirement>(&read);
  if (one == nullptr || one->specifier.empty() || !one->marker.empty()) {
    reader_.fail(at, fmt::format("`{}` is no set of versions, as in `>=3.10`", text));
  }
  lists.pythons.push_back(listed(at, one->specifier));
}

const std::string& ListedToml::exact_version(const TomlValue& package) const {
  const std::string& version = reader_.text(package, "version");
  const bool plain = std::all_of(version.begin(), version.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view(".+!-_").find(c) != std::string_view::npos;
  });
  if (!plain || std::holds_alternative<RequirementMistake>(parse_requirement("a==" + version))) {
    reader_.fail(*package.find("version"), fmt::format("`{}` is not an exact version", version));
  }
  return version;
}

std::optional<std::string> ListedToml::sha256(const TomlValue& at, std::string_view text) const {
  constexpr std::string_view kAlgorithm = "sha256:";
  if (!text.starts_with(kAlgorithm)) return std::nullopt;
  try {
    return Digest::from_hex(text.substr(kAlgorithm.size())).hex();
  } catch (const Error&) {
    reader_.fail(at, "a SHA-256 is 64 lower-case hex digits");
  }
}

void ListedToml::fail_without_sha256(const TomlValue& at, std::string_view name) const {
  reader_.fail(at, fmt::format("there is no `sha256` among the hashes of `{}`, the only ones that "
                               "mlenv checks",
                               name));
}

std::string both_markers(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  return fmt::format("({}) and ({})", a, b);
}

}  // namespace mlenv
