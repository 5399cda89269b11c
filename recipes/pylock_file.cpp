// A pylock.toml (PEP 751) that the recipe names. (uv's answers have the same format:
// recipes/resolve/pylock.hpp.)
#include "base/paths.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement_toml.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Whether a marker asks for one of PEP 751's own variables, outside of quotes.
bool names_choices(std::string_view marker) {
  std::string bare;
  char quote = 0;
  for (const char c : marker) {
    if (quote == 0 && c != '\'' && c != '"') bare += c;
    if (quote == c) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  return bare.find("extras") != std::string::npos ||
         bare.find("dependency_groups") != std::string::npos;
}

class PylockFile {
 public:
  PylockFile(const std::string& path, ListedFile file, RequirementLists& lists)
      : lists_(lists), toml_(std::move(file)), folder_(folder_of(path)) {}

  void read() {
    const TomlValue& root = toml_.root();
    if (!reader().text(root, "lock-version").starts_with("1.")) {
      reader().fail(*root.find("lock-version"), "this version of pylock.toml is not known");
    }
    toml_.add_python(root, lists_);
    const TomlValue* all = reader().optional_member(root, "packages", TomlKind::list);
    if (all == nullptr) return;
    for (const TomlValue& one : all->items) package(one);
  }

 private:
  const TomlReader& reader() const { return toml_.reader(); }

  void package(const TomlValue& at) {
    if (at.kind != TomlKind::table) reader().fail(at, "a package is a table");
    Requirement one;
    one.name = reader().text(at, "name");
    if (!is_wheel_name(normalise_wheel_name(one.name))) {
      reader().fail(*at.find("name"), fmt::format("`{}` is not a package name", one.name));
    }
    one.address = address(at);
    const std::string version = version_of(at, one.address);
    if (one.address.empty()) one.specifier = "==" + version;
    one.marker = reader().optional_text(at, "marker");
    if (names_choices(one.marker)) {
      reader().fail(*at.find("marker"),
                    "packages that extras or groups choose are not supported: export the file "
                    "with those that are meant");
    }
    const auto read = parse_requirement(one.str());
    if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
      reader().fail(one.marker.empty() ? at : *at.find("marker"), wrong->message);
    }
    const ListedText place = toml_.listed(*at.find("name"), one.str());
    lists_.requirements.push_back(place);
    lists_.add_hashes({one.normalised_name(), version}, hashes(at), place);
  }

  /// Of a package that comes from no index; else empty.
  std::string address(const TomlValue& at) const {
    for (const char* key : {"vcs", "directory", "archive"}) {
      const TomlValue* one = reader().optional_member(at, key, TomlKind::table);
      if (one == nullptr) continue;
      const auto text = [&](const char* name) { return reader().optional_text(*one, name); };
      std::string found;
      if (std::string_view(key) == "vcs") {
        if (reader().text(*one, "type") != "git") {
          reader().fail(*one->find("type"), "of version control systems only git is supported");
        }
        found = "git+" + reader().text(*one, "url") + '@' + reader().text(*one, "commit-id");
      } else if (one->find("url") != nullptr) {
        found = text("url");
      } else {
        found = "file:" + reader().text(*one, "path");
      }
      const std::string subdirectory = text("subdirectory");
      if (!subdirectory.empty()) found += "#subdirectory=" + subdirectory;
      return toml_.address(*one, found, folder_);
    }
    return {};
  }

  /// What hashes are of; empty where an entry has neither a version nor a file that tells it.
  std::string version_of(const TomlValue& at, const std::string& address) const {
    if (address.empty()) return toml_.exact_version(at);
    const auto read = parse_package_address(address);
    const auto file = parse_release_file(std::get<PackageAddress>(read).file());
    return file ? file->version : reader().optional_text(at, "version");
  }

  std::set<std::string> hashes(const TomlValue& package) const {
    std::vector<const TomlValue*> files;
    for (const char* key : {"archive", "sdist"}) {
      if (const auto* one = reader().optional_member(package, key, TomlKind::table))
        files.push_back(one);
    }
    if (const auto* wheels = reader().optional_member(package, "wheels", TomlKind::list)) {
      for (const TomlValue& wheel : wheels->items) files.push_back(&wheel);
    }
    std::set<std::string> found;
    const TomlValue* other = nullptr;
    for (const TomlValue* file : files) {
      if (file->kind != TomlKind::table) reader().fail(*file, "a wheel is a table");
      const TomlValue* all = reader().optional_member(*file, "hashes", TomlKind::table);
      if (all == nullptr || all->members.empty()) continue;
      if (all->find("sha256") == nullptr) {
        if (other == nullptr) other = all;
        continue;
      }
      const std::string& hex = reader().text(*all, "sha256");
      if (auto digest = toml_.sha256(*all->find("sha256"), "sha256:" + hex)) found.insert(*digest);
    }
    if (found.empty() && other != nullptr) {
      toml_.fail_without_sha256(*other, reader().text(package, "name"));
    }
    return found;
  }

  RequirementLists& lists_;
  ListedToml toml_;
  std::string folder_;
};

}  // namespace

void read_pylock_file(const std::string& path, std::shared_ptr<const RequirementsText> file,
                      RequirementLists& lists) {
  PylockFile(path, std::move(file), lists).read();
}

}  // namespace mlenv
