// pyproject.toml (PyPA's "pyproject.toml specification"); Poetry's table is in convert_poetry.cpp.
#include <algorithm>
#include <set>
#include <span>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/convert_poetry.hpp"
#include "recipes/marker.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNotInstalled =
    "the project itself is not installed: copy it with `files`, or run it from its folder";
constexpr std::string_view kKnownWhenBuilt = "they are known only when the project is built";

class PyprojectConverter {
 public:
  PyprojectConverter(const ConversionSource& source, const ProjectChoice& choice, Conversion& to)
      : source_(source),
        choice_(choice),
        root_(parse_toml({source.path, source.text, "source-invalid", {}})),
        to_(to) {}

  void convert() {
    to_.draft.wants_python = true;
    const TomlValue* project = root_.table("project");
    const TomlValue* tool = root_.table("tool");
    const TomlValue none{};
    const TomlValue& tools = tool == nullptr ? none : *tool;
    const TomlValue* uv = tools.table("uv");
    poetry_ = tools.table("poetry");
    if (uv != nullptr) sources_ = uv->table("sources");
    if (uv != nullptr) indexes_ = uv->find("index");
    if (project != nullptr) standard(*project, tools);
    if (poetry_ != nullptr) {
      convert_poetry(source_, *poetry_, choice_, standard_, to_);
    }
    if (project == nullptr && poetry_ == nullptr) without_standard(tools);
    taken_groups();
    if (uv != nullptr) convert_uv_settings(source_, *uv, to_);
    if (const TomlValue* build = root_.table("build-system")) {
      leave_out(*build, "build-system", kNotInstalled);
    }
    for (const std::string_view why : {kNotInstalled, kKnownWhenBuilt, kProgramsOfProject}) {
      to_.only_without_project({source_.shown, 0}, why);
    }
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  void leave_out(const TomlValue& at, std::string_view text, std::string_view why) {
    to_.leave_out(place(at), text, why);
  }

  void groups(const TomlValue& in, const std::string& key, std::string_view why) {
    const TomlValue* found = in.table(key);
    if (found == nullptr) return;
    for (const auto& [name, value] : found->members) {
      to_.leave_out_with_others(place(value), name, why);
    }
  }

  void python(const TomlValue* range) {
    if (range == nullptr || range->kind != TomlKind::text) return;
    // What Pixi's table beside it says is more: a version.
    const std::string& known = to_.draft.python;
    if (known.empty() || !version_satisfies(known + ".99", range->text)) {
      to_.python_range(place(*range), range->text);
    }
  }

  void standard(const TomlValue& project, const TomlValue& tools) {
    const TomlValue* name = project.find("name");
    if (name != nullptr && name->kind == TomlKind::text)
      to_.draft.name = image_name_from(name->text);
    python(project.find("requires-python"));
    if (const TomlValue* list = project.find("dependencies")) packages(*list, "dependencies");
    extras(project);
    for (const std::string key : {"scripts", "gui-scripts", "entry-points"}) {
      groups(project, key, kProgramsOfProject);
    }
    const TomlValue* dynamic = project.find("dynamic");
    if (dynamic == nullptr) return;
    for (const TomlValue& item : dynamic->items) {
      if (item.text == "dependencies") dynamic_dependencies(item, tools);
    }
  }

  void packages(const TomlValue& list, const std::string& key) {
    for (const TomlValue& item : list.items) {
      if (item.kind == TomlKind::text) {
        project_package(item);
      } else {
        leave_out(item, "an item of " + key, "not a text");
      }
    }
  }

  /// Of a table of lists those that are chosen; the others are told with `why`.
  void chosen_lists(const TomlValue& in, const std::string& key,
                    const std::vector<std::string>& chosen, std::string_view why) {
    const TomlValue* all = in.table(key);
    if (all == nullptr) return;
    for (const auto& [name, list] : all->members) {
      const std::string whole = key + '.' + name;
      if (is_chosen(chosen, name)) {
        packages(list, whole);
      } else {
        to_.leave_out_with_others(place(list), name, why);
      }
    }
  }

  void extras(const TomlValue& project) {
    chosen_lists(project, "optional-dependencies", choice_.extras,
                 "extras, which nothing asks for: `requirements: [\"pyproject.toml[NAME]\"]` takes "
                 "one");
  }

  void taken_groups() {
    chosen_lists(root_, "dependency-groups", choice_.groups,
                 "groups, which nothing asks for: `requirements: [{file: pyproject.toml, groups: "
                 "[NAME]}]` takes one");
  }

  /// Where the build backend reads them (setuptools' documentation, "Dynamic Metadata";
  /// hatch-requirements-txt's).
  static const TomlValue* files_of_dynamic(const TomlValue& tools) {
    const auto at = [](const TomlValue* in, std::initializer_list<const char*> keys) {
      for (const char* key : keys) in = in == nullptr ? nullptr : in->find(key);
      return in;
    };
    const TomlValue* of_setuptools = at(&tools, {"setuptools", "dynamic", "dependencies", "file"});
    if (of_setuptools != nullptr) return of_setuptools;
    return at(&tools, {"hatch", "metadata", "hooks", "requirements_txt", "files"});
  }

  void dynamic_dependencies(const TomlValue& item, const TomlValue& tools) {
    const fs::path folder = source_.path.parent_path();
    std::error_code unknown;
    if (const TomlValue* files = files_of_dynamic(tools)) {
      std::vector<std::string> names;
      if (files->kind == TomlKind::text) names.push_back(files->text);
      for (const TomlValue& one : files->items) names.push_back(one.text);
      for (const std::string& name : names) {
        const fs::path path = folder / name;
        if (!fs::is_regular_file(path, unknown)) {
          leave_out(*files, name, "there is no such file here");
          continue;
        }
        to_.requirements(path, path.lexically_normal().string(),
                         read_small_file(path, size_limit::kConverted));
      }
      return;
    }
    for (const char* name : {"setup.py", "setup.cfg"}) {
      if (fs::is_regular_file(folder / name, unknown)) {
        return convert_setup(read_source(folder / name, to_), to_);
      }
    }
    leave_out(item, "dynamic: dependencies", kKnownWhenBuilt);
  }

  /// Flit's old table; setup.py where the file has settings alone.
  void without_standard(const TomlValue& tools) {
    const TomlValue* flit = tools.table("flit");
    const TomlValue* metadata = flit == nullptr ? nullptr : flit->table("metadata");
    if (metadata != nullptr) {
      python(metadata->find("requires-python"));
      if (const TomlValue* list = metadata->find("requires")) packages(*list, "requires");
      return;
    }
    if (tools.table("pixi") != nullptr) return;
    std::error_code unknown;
    for (const char* name : {"setup.py", "setup.cfg"}) {
      const fs::path path = source_.path.parent_path() / name;
      if (fs::is_regular_file(path, unknown)) return convert_setup(read_source(path, to_), to_);
    }
    leave_out(root_, source_.shown, "it has neither `[project]` nor `[tool.poetry]`");
  }

  /// `[tool.uv.sources]` goes before the indexes.
  void project_package(const TomlValue& item) {
    const auto read = parse_requirement(trim(item.text));
    const auto* one = std::get_if<Requirement>(&read);
    if (one != nullptr) standard_.insert(one->normalised_name());
    const TomlValue* source = one == nullptr ? nullptr : place_of(one->normalised_name());
    if (source == nullptr) return to_.python_package(place(item), item.text);
    const bool plain = source->kind == TomlKind::table && source->find("marker") == nullptr &&
                       source->find("extra") == nullptr && source->find("group") == nullptr;
    Requirement there = *one;
    there.specifier.clear();
    there.address = plain ? address_in_toml(source_, *source, to_) : std::string{};
    if (!there.address.empty()) return to_.python_package(place(item), there.str());
    if (!from_indexes(*one, *source)) {
      leave_out(*source, "tool.uv.sources." + one->name,
                "neither an index nor one repository, path or URL: the package is taken from the "
                "default index");
    }
    to_.python_package(place(item), item.text);
  }

  /// Whether each entry that counts is an index, which is then the package's own; none counts where
  /// all are of extras, groups and systems that nobody asks for.
  bool from_indexes(const Requirement& requirement, const TomlValue& source) {
    const std::span<const TomlValue> entries = source.kind == TomlKind::list
                                                   ? std::span<const TomlValue>(source.items)
                                                   : std::span<const TomlValue>(&source, 1);
    bool all = true;
    for (const TomlValue& entry : entries) {
      if (!counts(entry)) continue;
      const TomlValue* index = index_called(entry.text_of("index"));
      if (index == nullptr) {
        all = false;
      } else {
        to_.package_index(place(*index), requirement.normalised_name(), index->text_of("url"),
                          index->text_of("format") == "flat");
      }
    }
    return all;
  }

  bool counts(const TomlValue& entry) const {
    const std::string marker = entry.text_of("marker");
    const std::string extra = entry.text_of("extra");
    const std::string group = entry.text_of("group");
    if (!extra.empty() && !is_chosen(choice_.extras, extra)) return false;
    if (!group.empty() && !is_chosen(choice_.groups, group)) return false;
    return marker.empty() || marker_mistake(marker) || marker_reach(marker) != MarkerReach::none;
  }

  const TomlValue* index_called(const std::string& name) const {
    if (indexes_ == nullptr || name.empty()) return nullptr;
    for (const TomlValue& index : indexes_->items) {
      if (index.text_of("name") == name && !index.text_of("url").empty()) return &index;
    }
    return nullptr;
  }

  /// In uv's table, or in Poetry's, which beside `[project]` says where a package is.
  const TomlValue* place_of(const std::string& name) const {
    if (const TomlValue* of_uv = member_named(sources_, name)) return of_uv;
    const TomlValue* beside = poetry_ == nullptr ? nullptr : poetry_->table("dependencies");
    const TomlValue* of_poetry = member_named(beside, name);
    return of_poetry != nullptr && !address_in_toml(source_, *of_poetry, to_).empty() ? of_poetry
                                                                                      : nullptr;
  }

  static const TomlValue* member_named(const TomlValue* in, const std::string& name) {
    if (in == nullptr) return nullptr;
    for (const auto& [key, value] : in->members) {
      if (normalise_wheel_name(key) == normalise_wheel_name(name)) return &value;
    }
    return nullptr;
  }

  const ConversionSource& source_;
  const ProjectChoice& choice_;
  TomlValue root_;
  Conversion& to_;
  const TomlValue* sources_ = nullptr;  ///< of uv's
  const TomlValue* poetry_ = nullptr;
  std::set<std::string> standard_;      ///< packages that `[project]` asks for
  const TomlValue* indexes_ = nullptr;  ///< of uv's
};

}  // namespace

void convert_pyproject(const ConversionSource& source, Conversion& to,
                       const ProjectChoice& choice) {
  PyprojectConverter(source, choice, to).convert();
}

}  // namespace mlenv
