// pyproject.toml: `[project]` (PEP 621), `[dependency-groups]` (PEP 735), and `[tool.uv]`
// (requirement_uv.hpp).
#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "recipes/requirement_toml.hpp"
#include "recipes/requirement_uv.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class Pyproject {
 public:
  Pyproject(const RequirementFolder& folder, const RequirementSource& source, ListedFile file,
            RequirementLists& lists)
      : folder_(folder), source_(source), lists_(lists), toml_(std::move(file)) {}

  void read() {
    if (const TomlValue* own = table_of_uv()) uv_.emplace(folder_, source_, toml_, *own);
    project_ = reader().optional_member(toml_.root(), "project", TomlKind::table);
    groups_ = reader().optional_member(toml_.root(), "dependency-groups", TomlKind::table);
    if (project_ == nullptr && (groups_ == nullptr || source_.groups.empty())) no_project();
    if (project_ != nullptr) project();
    for (const Placed& group : source_.groups) take_group(group);
    if (uv_) uv_->read(lists_);
  }

 private:
  const TomlReader& reader() const { return toml_.reader(); }

  [[noreturn]] void no_project() const {
    const TomlValue* tool = toml_.root().find("tool");
    if (tool != nullptr && tool->find("poetry") != nullptr) {
      reader().fail(*tool->find("poetry"),
                    "Poetry's own tables are not read: write `[project]` (PEP 621), or export a "
                    "requirements.txt");
    }
    folder_.fail(source_.file,
                 fmt::format("`{}` has no `[project]` table{}", source_.file.text,
                             groups_ == nullptr ? "" : ", and no `groups` of it are asked for"));
  }

  void project() {
    name_ = normalise_wheel_name(reader().optional_text(*project_, "name"));
    const TomlValue* dynamic = reader().optional_member(*project_, "dynamic", TomlKind::list);
    if (dynamic != nullptr) {
      for (const TomlValue& one : dynamic->items) {
        const bool optional = one.text == "optional-dependencies" && !source_.extras.empty();
        if (one.text != "dependencies" && !optional) continue;
        reader().fail(one, fmt::format("only the project's build knows its {}: write them here, or "
                                       "in a requirements.txt",
                                       one.text));
      }
    }
    toml_.add_python(*project_, lists_);
    if (const TomlValue* all =
            reader().optional_member(*project_, "dependencies", TomlKind::list)) {
      for (const TomlValue& one : all->items) add(one, {});
    }
    extras_ = reader().optional_member(*project_, "optional-dependencies", TomlKind::table);
    for (const Placed& extra : source_.extras) {
      if (!take_extra(extra.text, {})) unknown(extra, "extra", extras_);
    }
  }

  /// False when there is none of that name.
  bool take_extra(const std::string& name, const std::string& marker) {
    const TomlValue* list = find(extras_, name);
    if (list == nullptr) return false;
    if (!taken_extras_.insert({normalise_wheel_name(name), marker}).second) return true;
    // Within itself it adds nothing: the marker there only narrows.
    if (!open_extras_.insert(normalise_wheel_name(name)).second) return true;
    if (list->kind != TomlKind::list) reader().fail(*list, "an extra is a list of requirements");
    for (const TomlValue& one : list->items) add(one, marker);
    open_extras_.erase(normalise_wheel_name(name));
    return true;
  }

  void take_group(const Placed& group) {
    const TomlValue* list = find(groups_, group.text);
    if (list == nullptr) unknown(group, "group", groups_);
    read_group(normalise_wheel_name(group.text), *list);
  }

  void read_group(const std::string& name, const TomlValue& list) {
    if (!taken_groups_.insert(name).second) return;
    if (list.kind != TomlKind::list) reader().fail(list, "a group is a list of requirements");
    for (const TomlValue& one : list.items) {
      if (one.kind != TomlKind::table) {
        add(one, {});
        continue;
      }
      const std::string& other = reader().text(one, "include-group");
      const TomlValue* included = find(groups_, other);
      if (included == nullptr) {
        reader().fail(one, fmt::format("there is no group `{}`{}", other, near(other, groups_)));
      }
      read_group(normalise_wheel_name(other), *included);
    }
  }

  void add(const TomlValue& at, const std::string& marker) {
    Requirement one = toml_.requirement(at);
    one.marker = both_markers(marker, one.marker);
    if (!one.address.empty()) one.address = address_from(folder_of(source_.file.text), one.address);
    if (one.address.empty()) one.address = source_of(one.normalised_name());
    if (!one.address.empty()) one.specifier.clear();
    if (one.normalised_name() != name_) {
      lists_.requirements.push_back(toml_.listed(at, one.str()));
      return;
    }
    for (const std::string& extra : one.extras) {  // of the project itself
      if (take_extra(extra, one.marker)) continue;
      reader().fail(at,
                    fmt::format("`{}` has no extra `{}`{}", one.name, extra, near(extra, extras_)));
    }
  }

  static const TomlValue* find(const TomlValue* table, const std::string& name) {
    if (table == nullptr) return nullptr;
    for (const auto& [key, value] : table->members) {
      if (normalise_wheel_name(key) == normalise_wheel_name(name)) return &value;
    }
    return nullptr;
  }

  static std::string near(const std::string& name, const TomlValue* table) {
    std::vector<std::string_view> names;
    if (table != nullptr) {
      for (const auto& [key, value] : table->members) names.emplace_back(key);
    }
    return suggestion(name, names);
  }

  [[noreturn]] void unknown(const Placed& asked, std::string_view what,
                            const TomlValue* table) const {
    folder_.fail(asked, fmt::format("`{}` has no {} `{}`{}", source_.file.text, what, asked.text,
                                    near(asked.text, table)));
  }

  const TomlValue* table_of_uv() const {
    const TomlValue* tool = reader().optional_member(toml_.root(), "tool", TomlKind::table);
    return tool == nullptr ? nullptr : reader().optional_member(*tool, "uv", TomlKind::table);
  }

  /// The address that `[tool.uv.sources]` gives a package; empty: none.
  std::string source_of(const std::string& name) const {
    const TomlValue* source = uv_ ? uv_->source_of(name) : nullptr;
    if (source == nullptr || source->find("index") != nullptr) return {};
    const std::string text = source_text(name, *source);
    // A member's folder is from the recipe's.
    const bool member = source->find("workspace") != nullptr;
    return toml_.address(*source, text, member ? std::string_view{} : folder_of(source_.file.text));
  }

  std::string source_text(const std::string& name, const TomlValue& source) const {
    const auto text = [&](const char* key) { return reader().optional_text(source, key); };
    const bool plain = reader().optional_flag(source, "package", true);
    std::string address;
    if (plain && source.find("git") != nullptr) {
      address = "git+" + text("git");
      for (const char* key : {"rev", "tag", "branch"}) {
        if (source.find(key) != nullptr) address += '@' + text(key);
      }
    } else if (plain && source.find("path") != nullptr) {
      address = "file:" + text("path");
    } else if (plain && source.find("url") != nullptr) {
      address = text("url");
    } else if (reader().optional_flag(source, "workspace", false)) {
      const std::string member = uv_->member_folder(name);
      if (member.empty()) {
        reader().fail(source, fmt::format("no member of this file's workspace is called `{}`: "
                                          "write its `path`",
                                          name));
      }
      address = member;
    } else {
      reader().fail(source,
                    fmt::format("`[tool.uv.sources]` takes `{}` from another place, which is not "
                                "supported: write one of `index`, `git`, `path`, `url` and "
                                "`workspace`",
                                name));
    }
    const std::string subdirectory = text("subdirectory");
    return subdirectory.empty() ? address : address + "#subdirectory=" + subdirectory;
  }

  const RequirementFolder& folder_;
  const RequirementSource& source_;
  RequirementLists& lists_;
  ListedToml toml_;
  std::optional<UvSettings> uv_;  ///< nullopt: there is no `[tool.uv]`
  const TomlValue* project_ = nullptr;
  const TomlValue* groups_ = nullptr;
  const TomlValue* extras_ = nullptr;
  std::string name_;                                            ///< the project's own
  std::set<std::pair<std::string, std::string>> taken_extras_;  ///< name and marker
  std::set<std::string> open_extras_;                           // that are being read
  std::set<std::string> taken_groups_;
};

}  // namespace

void read_pyproject(const RequirementFolder& folder, const RequirementSource& source,
                    std::shared_ptr<const RequirementsText> file, RequirementLists& lists) {
  Pyproject(folder, source, std::move(file), lists).read();
}

}  // namespace mlenv
