// pyproject.toml: the standard's own table (PyPA's "pyproject.toml specification") and Poetry's.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "recipes/init/converters.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  while (!version.empty()) {
    const std::string_view part = version.substr(0, version.find('.'));
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc{} || end != part.data() + part.size()) return {};
    numbers.push_back(number);
    version.remove_prefix(std::min(part.size() + 1, version.size()));
  }
  return numbers;
}

/// Poetry's `^1.2` and `~1.2` as a range; nullopt for what is neither a number nor PEP 440.
std::optional<std::string> specifier_of_poetry(std::string_view text) {
  if (text.empty() || text == "*") return "";
  if (text.find("||") != std::string_view::npos) return std::nullopt;
  const bool caret = text.front() == '^';
  const bool tilde = text.front() == '~' && !text.starts_with("~=");
  if (!caret && !tilde)
    return is_digit(text.front()) ? fmt::format("=={}", text) : std::string(text);
  const std::vector<int> numbers = numbers_of(trim(text.substr(1)));
  if (numbers.empty() || text.find(',') != std::string_view::npos) return std::nullopt;
  // The number that goes up: the first that is not 0; for `~` the second.
  std::size_t up = tilde ? std::min<std::size_t>(1, numbers.size() - 1) : 0;
  while (caret && up + 1 < numbers.size() && numbers[up] == 0) ++up;
  std::vector<std::string> next;
  for (std::size_t i = 0; i < up; ++i) next.push_back(std::to_string(numbers[i]));
  next.push_back(std::to_string(numbers[up] + 1));
  return fmt::format(">={},<{}", trim(text.substr(1)), join(next, "."));
}

class PyprojectConverter {
 public:
  PyprojectConverter(const ConversionSource& source, Conversion& to)
      : source_(source),
        root_(parse_toml({source.path, source.text, "source-invalid", {}})),
        to_(to) {}

  void convert() {
    const TomlValue* project = table(root_, "project");
    const TomlValue* tool = table(root_, "tool");
    const TomlValue* poetry = tool == nullptr ? nullptr : table(*tool, "poetry");
    const TomlValue* uv_tool = tool == nullptr ? nullptr : table(*tool, "uv");
    if (uv_tool != nullptr) sources_ = table(*uv_tool, "sources");
    if (project != nullptr) standard(*project);
    if (poetry != nullptr) read_poetry(*poetry);
    if (project == nullptr && poetry == nullptr) {
      leave_out(root_, source_.shown, "it has neither `[project]` nor `[tool.poetry]`");
    }
    groups(root_, "dependency-groups",
           "not asked for: `requirements: [{file: pyproject.toml, groups: [NAME]}]` takes one");
    if (const TomlValue* uv = tool == nullptr ? nullptr : table(*tool, "uv")) {
      for (const auto& [key, value] : uv->members) {
        if (key == "sources") continue;
        leave_out(value, "tool.uv." + key, "a setting of uv's: indexes can be named in `sources`");
      }
    }
    if (table(root_, "build-system") != nullptr) {
      leave_out(
          *table(root_, "build-system"), "build-system",
          "the project itself is not installed: copy it with `files`, or run it from its folder");
    }
  }

 private:
  static const TomlValue* table(const TomlValue& in, const std::string& key) {
    const TomlValue* found = in.find(key);
    return found != nullptr && found->kind == TomlKind::table ? found : nullptr;
  }
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  void leave_out(const TomlValue& at, std::string_view text, std::string_view why) {
    to_.leave_out(place(at), text, why);
  }

  void groups(const TomlValue& in, const std::string& key, std::string_view why) {
    const TomlValue* found = table(in, key);
    if (found == nullptr) return;
    for (const auto& [name, value] : found->members) leave_out(value, key + '.' + name, why);
  }

  void standard(const TomlValue& project) {
    const TomlValue* name = project.find("name");
    if (name != nullptr && name->kind == TomlKind::text)
      to_.draft.name = image_name_from(name->text);
    const TomlValue* python = project.find("requires-python");
    if (python != nullptr && python->kind == TomlKind::text)
      to_.python_range(place(*python), python->text);
    if (const TomlValue* list = project.find("dependencies")) {
      for (const TomlValue& item : list->items) {
        if (item.kind == TomlKind::text) {
          project_package(item);
        } else {
          leave_out(item, "an item of dependencies", "not a text");
        }
      }
    }
    groups(project, "optional-dependencies",
           "not asked for: `requirements: [\"pyproject.toml[NAME]\"]` takes one");
    for (const std::string key : {"scripts", "gui-scripts", "entry-points"}) {
      groups(project, key, "the project itself is not installed, and so are none of its programs");
    }
    const TomlValue* dynamic = project.find("dynamic");
    if (dynamic == nullptr) return;
    for (const TomlValue& item : dynamic->items) {
      if (item.text == "dependencies") {
        leave_out(item, "dynamic: dependencies", "they are known only when the project is built");
      }
    }
  }

  /// `[tool.uv.sources]` goes before the indexes.
  void project_package(const TomlValue& item) {
    const auto read = parse_requirement(trim(item.text));
    const auto* one = std::get_if<Requirement>(&read);
    const TomlValue* source = one == nullptr ? nullptr : source_of(one->normalised_name());
    if (source == nullptr) return to_.python_package(place(item), item.text);
    const bool plain = source->kind == TomlKind::table && source->find("marker") == nullptr &&
                       source->find("extra") == nullptr && source->find("group") == nullptr;
    Requirement there = *one;
    there.specifier.clear();
    there.address = plain ? address_of(*source) : std::string{};
    if (!there.address.empty()) return to_.python_package(place(item), there.str());
    leave_out(*source, "tool.uv.sources." + one->name,
              "neither one repository nor one path or URL: the package is taken from an index");
    to_.python_package(place(item), item.text);
  }

  const TomlValue* source_of(const std::string& name) const {
    if (sources_ == nullptr) return nullptr;
    for (const auto& [key, value] : sources_->members) {
      if (normalise_wheel_name(key) == normalise_wheel_name(name)) return &value;
    }
    return nullptr;
  }

  void read_poetry(const TomlValue& poetry) {
    const TomlValue* name = poetry.find("name");
    if (name != nullptr && name->kind == TomlKind::text)
      to_.draft.name = image_name_from(name->text);
    if (const TomlValue* all = table(poetry, "dependencies")) {
      for (const auto& [package, value] : all->members) dependency(package, value);
    }
    groups(poetry, "group", "a group of its own: add with `mlenv add` what the image needs");
    groups(poetry, "dev-dependencies",
           "for development: add with `mlenv add` what the image needs");
    groups(poetry, "extras", "an extra of its own: add with `mlenv add` what the image needs");
    groups(poetry, "scripts",
           "the project itself is not installed, and so are none of its programs");
    if (const TomlValue* sources = poetry.find("source")) {
      leave_out(*sources, "tool.poetry.source", "indexes can be named in `sources`");
    }
  }

  void dependency(const std::string& package, const TomlValue& value) {
    const std::string address = address_of(value);
    const TomlValue* version = value.kind == TomlKind::table ? value.find("version") : &value;
    if (address.empty() && (version == nullptr || version->kind != TomlKind::text)) {
      return leave_out(value, package, "it says neither a version nor one place");
    }
    const std::optional<std::string> specifier =
        address.empty() ? specifier_of_poetry(version->text) : " @ " + address;
    if (!specifier) {
      return leave_out(value, package + " = " + version->text,
                       "a version that has no words in a recipe");
    }
    if (package == "python") return to_.python_range(place(value), *specifier);
    to_.python_package(place(value), package + extras_of(package, value) + *specifier);
  }

  /// What a recipe has no word for is told.
  std::string extras_of(const std::string& package, const TomlValue& value) {
    if (value.kind != TomlKind::table) return {};
    constexpr std::array<std::string_view, 10> kSaid = {
        "version", "extras",       "git",  "branch", "tag",
        "rev",     "subdirectory", "path", "url",    "develop"};
    for (const auto& [key, inner] : value.members) {
      if (std::find(kSaid.begin(), kSaid.end(), key) != kSaid.end()) continue;
      leave_out(inner, package + '.' + key, "no key of the recipe stands for it");
    }
    std::vector<std::string> names;
    if (const TomlValue* extras = value.find("extras")) {
      for (const TomlValue& extra : extras->items) names.push_back(extra.text);
    }
    return names.empty() ? std::string{} : '[' + join(names, ",") + ']';
  }

  /// Poetry's words for a repository, path or URL; empty: an index has it.
  static std::string address_of(const TomlValue& value) {
    if (value.kind != TomlKind::table) return {};
    const auto text = [&](const char* key) {
      const TomlValue* one = value.find(key);
      return one != nullptr && one->kind == TomlKind::text ? one->text : std::string{};
    };
    std::string address;
    if (!text("git").empty()) {
      address = "git+" + text("git");
      for (const char* key : {"rev", "tag", "branch"}) {
        if (!text(key).empty()) address += '@' + text(key);
      }
    } else if (!text("path").empty()) {
      address = "file:" + text("path");
    } else {
      address = text("url");
    }
    if (address.empty() || text("subdirectory").empty()) return address;
    return address + "#subdirectory=" + text("subdirectory");
  }

  const ConversionSource& source_;
  TomlValue root_;
  Conversion& to_;
  const TomlValue* sources_ = nullptr;  ///< of uv's
};

}  // namespace

void convert_pyproject(const ConversionSource& source, Conversion& to) {
  PyprojectConverter(source, to).convert();
}

}  // namespace mlenv
