// A pylock.toml (PEP 751) that the recipe names. (uv's answers have the same format:
// recipes/resolve/pylock.hpp.)
#include "recipes/requirement_toml.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Is = TomlValue::Kind;
using Text = std::shared_ptr<const RequirementsText>;

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
  PylockFile(Text file, RequirementLists& lists) : lists_(lists), toml_(std::move(file)) {}

  void read() {
    const TomlValue& root = toml_.root();
    if (!reader().text(root, "lock-version").starts_with("1.")) {
      reader().fail(*root.find("lock-version"), "this version of pylock.toml is not known");
    }
    toml_.add_python(root, lists_);
    const TomlValue* all = reader().optional_member(root, "packages", Is::list);
    if (all == nullptr) return;
    for (const TomlValue& one : all->items) package(one);
  }

 private:
  const TomlReader& reader() const { return toml_.reader(); }

  void package(const TomlValue& at) {
    if (at.kind != Is::table) reader().fail(at, "a package is a table");
    Requirement one;
    one.name = reader().text(at, "name");
    if (!is_wheel_name(normalise_wheel_name(one.name))) {
      reader().fail(*at.find("name"), fmt::format("`{}` is not a package name", one.name));
    }
    for (const char* key : {"vcs", "directory", "archive"}) {
      if (at.find(key) == nullptr) continue;
      reader().fail(*at.find(key), fmt::format("`{}` comes from no index, which is not supported "
                                               "yet",
                                               one.name));
    }
    const std::string& version = reader().text(at, "version");
    one.specifier = "==" + version;
    one.marker = reader().optional_text(at, "marker");
    if (names_choices(one.marker)) {
      reader().fail(*at.find("marker"),
                    "packages that extras or groups choose are not supported: export the file "
                    "with those that are meant");
    }
    const auto read = parse_requirement(one.str());
    if (std::holds_alternative<RequirementMistake>(read)) {
      reader().fail(*at.find("version"), fmt::format("`{}` is not a version", version));
    }
    const ListedText place = toml_.listed(*at.find("name"), one.str());
    lists_.requirements.push_back(place);
    lists_.add_hashes({one.normalised_name(), version}, hashes(at), place);
  }

  std::set<std::string> hashes(const TomlValue& package) const {
    std::set<std::string> found;
    if (const TomlValue* source = reader().optional_member(package, "sdist", Is::table)) {
      add_hash(*source, found);
    }
    const TomlValue* wheels = reader().optional_member(package, "wheels", Is::list);
    if (wheels == nullptr) return found;
    for (const TomlValue& wheel : wheels->items) {
      if (wheel.kind != Is::table) reader().fail(wheel, "a wheel is a table");
      add_hash(wheel, found);
    }
    return found;
  }

  void add_hash(const TomlValue& file, std::set<std::string>& found) const {
    const TomlValue* all = reader().optional_member(file, "hashes", Is::table);
    if (all == nullptr || all->find("sha256") == nullptr) return;
    const std::string& hex = reader().text(*all, "sha256");
    if (auto digest = toml_.sha256(*all->find("sha256"), "sha256:" + hex)) found.insert(*digest);
  }

  RequirementLists& lists_;
  ListedToml toml_;
};

}  // namespace

void read_pylock_file(std::shared_ptr<const RequirementsText> file, RequirementLists& lists) {
  PylockFile(std::move(file), lists).read();
}

}  // namespace mlenv
