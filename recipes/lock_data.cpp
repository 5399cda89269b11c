#include "recipes/lock_data.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/lock_format.hpp"
#include "recipes/text.hpp"

namespace mlenv {

std::string render_data(const std::vector<LockedData>& data) {
  if (data.empty()) return {};
  std::string out = "data = [\n";
  for (const LockedData& one : data) {
    const std::string hex = one.digest.substr(one.digest.find(':') + 1);
    out += fmt::format("  {{ name = {}, to = {}, sha256 = {}", toml_text(one.name),
                       toml_text(one.to), toml_text(hex));
    if (!one.stage.empty()) out += ", stage = " + toml_text(one.stage);
    out += " },\n";
  }
  return out + "]\n";
}

std::vector<LockedData> read_data(const TomlReader& reader, const TomlValue& settings) {
  std::vector<LockedData> data;
  const TomlValue* list = reader.optional_member(settings, "data", TomlValue::Kind::list);
  if (list == nullptr) return data;
  for (const TomlValue& item : list->items) {
    if (item.kind != TomlValue::Kind::table) reader.fail(item, "a data set is a table in one line");
    constexpr std::array<std::string_view, 4> kKeys = {"name", "to", "sha256", "stage"};
    reader.only(item, kKeys);
    LockedData one{reader.text(item, "name"), reader.text(item, "to"),
                   read_digest(reader, item, "sha256").str(), reader.optional_text(item, "stage")};
    if (!is_secret_id(one.name)) reader.fail(*item.find("name"), "`name` is no plain name");
    if (!is_clean_absolute_path(one.to)) {
      reader.fail(*item.find("to"), "`to` is not a clean absolute path");
    }
    data.push_back(std::move(one));
  }
  return data;
}

}  // namespace mlenv
