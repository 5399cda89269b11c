// uv.lock. It holds a graph for every platform and every choice of extras: what the project at its
// root asks for becomes requirements, and the version of each package that can be reached from
// there a constraint, so that markers are left to uv.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "recipes/logins.hpp"
#include "recipes/requirement_toml.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::int64_t kUvLockVersion = 1;

class UvLock {
 public:
  UvLock(const RequirementFolder& folder, const RequirementSource& source, ListedFile file,
         RequirementLists& lists)
      : folder_(folder), source_(source), lists_(lists), toml_(std::move(file)) {}

  void read() {
    const TomlValue& root = toml_.root();
    const TomlValue& version = reader().member(root, "version", TomlKind::integer);
    if (version.integer != kUvLockVersion) {
      reader().fail(version, fmt::format("this is format {} of uv.lock, mlenv reads {}",
                                         version.integer, kUvLockVersion));
    }
    if (const TomlValue* conflicts = root.find("conflicts")) {
      reader().fail(*conflicts,
                    "a uv.lock with conflicting extras is not supported: export a pylock.toml "
                    "with those that are meant");
    }
    toml_.add_python(root, lists_);
    read_manifest();
    read_packages();
    const TomlValue& own = project();
    own_ = &own;
    take(reader().optional_member(own, "dependencies", TomlKind::list));
    choose(own, "optional-dependencies", source_.extras, "extra");
    choose(own, "dev-dependencies", source_.groups, "group");
  }

 private:
  const TomlReader& reader() const { return toml_.reader(); }

  /// How the project's settings steered uv.
  void read_manifest() {
    const TomlValue* manifest = reader().optional_member(toml_.root(), "manifest", TomlKind::table);
    if (manifest == nullptr) return;
    Steering found;
    const auto each = [&](const char* key, const auto& take) {
      const TomlValue* all = reader().optional_member(*manifest, key, TomlKind::list);
      for (const TomlValue& one : all == nullptr ? std::vector<TomlValue>{} : all->items) take(one);
    };
    each("overrides", [&](const TomlValue& one) { found.overrides.push_back(demand(one)); });
    each("constraints", [&](const TomlValue& one) {
      lists_.constraints.push_back(toml_.listed(one, demand(one)));
    });
    each("build-constraints",
         [&](const TomlValue& one) { found.build.constraints.push_back(demand(one)); });
    each("excludes", [&](const TomlValue& one) {
      const bool table = one.kind == TomlKind::table;
      found.exclude.insert(normalise_wheel_name(table ? reader().text(one, "name") : one.text));
    });
    each("dependency-metadata", [&](const TomlValue& one) {
      if (one.kind != TomlKind::table) reader().fail(one, "what is said of a package is a table");
      found.metadata.push_back(
          {normalise_wheel_name(reader().text(one, "name")), reader().optional_text(one, "version"),
           reader().texts(one, "requires-dist"), reader().optional_text(one, "requires-python"),
           reader().texts(one, "provides-extras")});
    });
    add_steering(lists_.steering, found);
  }

  /// `{ name = "numpy", specifier = "<2" }`, as PEP 508.
  std::string demand(const TomlValue& at) const {
    if (at.kind != TomlKind::table) reader().fail(at, "a requirement is a table");
    Requirement made;
    made.name = reader().text(at, "name");
    made.specifier = reader().optional_text(at, "specifier");
    std::erase(made.specifier, ' ');
    if (made.specifier == "*") made.specifier.clear();
    made.marker = reader().optional_text(at, "marker");
    for (const char* key : {"git", "url", "path", "directory", "editable"}) {
      if (at.find(key) == nullptr) continue;
      reader().fail(at, fmt::format("`{}` is steered to an address, which is not supported: name "
                                    "it under `packages` of the recipe",
                                    made.name));
    }
    return checked(at, made).text;
  }

  void read_packages() {
    const TomlValue* all = reader().optional_member(toml_.root(), "package", TomlKind::list);
    if (all == nullptr) return;
    for (const TomlValue& one : all->items) {
      if (one.kind != TomlKind::table) reader().fail(one, "a package is a table");
      by_name_[reader().text(one, "name")].push_back(&one);
    }
  }

  /// The project that the file is of.
  const TomlValue& project() const {
    for (const auto& [name, packages] : by_name_) {
      for (const TomlValue* one : packages) {
        const TomlValue& source = reader().member(*one, "source", TomlKind::table);
        for (const char* key : {"virtual", "editable", "directory"}) {
          if (reader().optional_text(source, key) == ".") return *one;
        }
      }
    }
    folder_.fail(source_.file, fmt::format("`{}` is of no project: no package of it has its source "
                                           "in `.`",
                                           source_.file.text));
  }

  void choose(const TomlValue& own, const std::string& key, const std::vector<Placed>& wanted,
              std::string_view what) {
    const TomlValue* table = reader().optional_member(own, key, TomlKind::table);
    for (const Placed& one : wanted) {
      const TomlValue* list = nullptr;
      std::vector<std::string_view> names;
      if (table != nullptr) {
        for (const auto& [name, value] : table->members) {
          names.emplace_back(name);
          if (normalise_wheel_name(name) == normalise_wheel_name(one.text)) list = &value;
        }
      }
      if (list == nullptr) {
        folder_.fail(one, fmt::format("`{}` has no {} `{}`{}", source_.file.text, what, one.text,
                                      suggestion(one.text, names)));
      }
      if (list->kind != TomlKind::list) reader().fail(*list, "dependencies are a list");
      take(list);
    }
  }

  /// Dependencies of the project itself, where `condition` holds.
  void take(const TomlValue* list, const std::string& condition = {}) {
    if (list == nullptr) return;
    for (const TomlValue& one : list->items) {
      if (one.kind != TomlKind::table) reader().fail(one, "a dependency is a table");
      Requirement wanted;
      wanted.name = reader().text(one, "name");
      wanted.extras = reader().texts(one, "extra");
      wanted.marker = both_markers(condition, reader().optional_text(one, "marker"));
      if (wanted.name == reader().text(*own_, "name")) {
        take_own_extras(wanted);
        continue;
      }
      const std::string version = reader().optional_text(one, "version");
      if (!version.empty()) wanted.specifier = "==" + version;
      lists_.requirements.push_back(checked(one, wanted));
      reach(one);
    }
  }

  /// Groups and extras that name the project's own, as in `dev = ["project[test]"]`.
  void take_own_extras(const Requirement& wanted) {
    const TomlValue* table =
        reader().optional_member(*own_, "optional-dependencies", TomlKind::table);
    for (const std::string& extra : wanted.extras) {
      if (table == nullptr || !own_extras_.emplace(extra, wanted.marker).second) continue;
      take(reader().optional_member(*table, extra, TomlKind::list), wanted.marker);
    }
  }

  ListedText checked(const TomlValue& at, const Requirement& made) const {
    const auto read = parse_requirement(made.str());
    if (const auto* wrong = std::get_if<RequirementMistake>(&read))
      reader().fail(at, wrong->message);
    return toml_.listed(at, made.str());
  }

  /// Every package that a dependency may mean, and what those need.
  void reach(const TomlValue& first) {
    std::vector<const TomlValue*> dependencies = {&first};
    while (!dependencies.empty()) {
      const TomlValue& wanted = *dependencies.back();
      dependencies.pop_back();
      const std::string& name = reader().text(wanted, "name");
      const std::string version = reader().optional_text(wanted, "version");
      bool found = false;
      for (const TomlValue* package : by_name_[name]) {
        if (!version.empty() && reader().optional_text(*package, "version") != version) continue;
        found = true;
        visit(*package, reader().texts(wanted, "extra"), dependencies);
      }
      if (!found) reader().fail(wanted, fmt::format("there is no package `{}` in the file", name));
    }
  }

  void visit(const TomlValue& package, const std::vector<std::string>& extras,
             std::vector<const TomlValue*>& dependencies) {
    if (seen_.insert({&package, ""}).second) {
      if (&package != own_) pin(package);
      append(reader().optional_member(package, "dependencies", TomlKind::list), dependencies);
    }
    const TomlValue* optional =
        reader().optional_member(package, "optional-dependencies", TomlKind::table);
    for (const std::string& extra : extras) {
      if (optional == nullptr || !seen_.insert({&package, extra}).second) continue;
      append(reader().optional_member(*optional, extra, TomlKind::list), dependencies);
    }
  }

  void append(const TomlValue* list, std::vector<const TomlValue*>& dependencies) const {
    if (list == nullptr) return;
    for (const TomlValue& one : list->items) {
      if (one.kind != TomlKind::table) reader().fail(one, "a dependency is a table");
      dependencies.push_back(&one);
    }
  }

  void pin(const TomlValue& package) {
    const TomlValue& source = reader().member(package, "source", TomlKind::table);
    Requirement made;
    made.name = reader().text(package, "name");
    if (source.find("registry") == nullptr) {
      made.address = address(made.name, source);
    } else {
      made.specifier = "==" + toml_.exact_version(package);
      take_index(made, source);
    }
    const std::vector<std::string> forks = reader().texts(package, "resolution-markers");
    if (forks.size() == 1) made.marker = forks.front();
    if (forks.size() > 1) made.marker = '(' + join(forks, ") or (") + ')';
    const ListedText place = checked(*package.find("name"), made);
    lists_.constraints.push_back(place);
    const std::string version = reader().optional_text(package, "version");
    if (!version.empty()) {
      lists_.add_hashes({made.normalised_name(), version}, hashes(package), place);
    }
  }

  /// A local version (`2.5.1+cu121`) is of the index that made it, and of no other.
  void take_index(const Requirement& made, const TomlValue& source) {
    const std::string& registry = reader().text(source, "registry");
    const bool server = registry.starts_with("https://") || registry.starts_with("http://");
    if (made.specifier.find('+') == std::string::npos || !server) return;
    if (!find_logins(registry).empty()) {
      reader().fail(source, "a file that people share must not hold a login");
    }
    Steering found;
    found.indexes.push_back({registry, registry.ends_with(".html"), {made.normalised_name()}});
    add_steering(lists_.steering, found);
  }

  /// `{ git = "https://host/x?subdirectory=a&rev=main#COMMIT" }`, `{ editable = "libs/x" }`, …
  std::string address(const std::string& name, const TomlValue& source) const {
    const std::string folder(folder_of(source_.file.text));
    for (const char* key : {"editable", "directory", "path"}) {
      if (source.find(key) == nullptr) continue;
      return toml_.address(source, "file:" + reader().text(source, key), folder);
    }
    if (source.find("url") != nullptr) {
      return toml_.address(source, reader().text(source, "url"), folder);
    }
    if (source.find("git") == nullptr) {
      reader().fail(source, fmt::format("`{}` comes from no index, which is not supported: a "
                                        "package that is not installed",
                                        name));
    }
    const std::string& text = reader().text(source, "git");
    const std::size_t hash = text.find('#');
    if (hash == std::string::npos) reader().fail(source, "the commit is missing");
    const std::size_t query = text.find('?');
    std::string found =
        fmt::format("git+{}@{}", text.substr(0, std::min(query, hash)), text.substr(hash + 1));
    if (query < hash) {
      for (const std::string_view part :
           split(std::string_view(text).substr(query + 1, hash - query - 1), '&')) {
        if (part.starts_with("subdirectory=")) found += '#' + std::string(part);
      }
    }
    return toml_.address(source, found, folder);
  }

  std::set<std::string> hashes(const TomlValue& package) const {
    std::vector<const TomlValue*> files;
    if (const auto* source = reader().optional_member(package, "sdist", TomlKind::table)) {
      files.push_back(source);
    }
    if (const auto* wheels = reader().optional_member(package, "wheels", TomlKind::list)) {
      for (const TomlValue& wheel : wheels->items) files.push_back(&wheel);
    }
    std::set<std::string> found;
    const TomlValue* other = nullptr;
    for (const TomlValue* file : files) {
      if (file->kind != TomlKind::table) reader().fail(*file, "a wheel is a table");
      const std::string hash = reader().optional_text(*file, "hash");
      if (hash.empty()) continue;
      const TomlValue& at = *file->find("hash");
      if (auto digest = toml_.sha256(at, hash)) {
        found.insert(*digest);
      } else if (other == nullptr) {
        other = &at;
      }
    }
    if (found.empty() && other != nullptr) {
      toml_.fail_without_sha256(*other, reader().text(package, "name"));
    }
    return found;
  }

  const RequirementFolder& folder_;
  const RequirementSource& source_;
  RequirementLists& lists_;
  ListedToml toml_;
  const TomlValue* own_ = nullptr;                            ///< the project
  std::set<std::pair<std::string, std::string>> own_extras_;  ///< with the marker that they have
  std::map<std::string, std::vector<const TomlValue*>> by_name_;
  std::set<std::pair<const TomlValue*, std::string>> seen_;  ///< with an extra of it, or none
};

}  // namespace

void read_uv_lock(const RequirementFolder& folder, const RequirementSource& source,
                  std::shared_ptr<const RequirementsText> file, RequirementLists& lists) {
  UvLock(folder, source, std::move(file), lists).read();
}

}  // namespace mlenv
