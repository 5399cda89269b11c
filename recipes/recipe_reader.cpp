#include "recipes/recipe_reader.hpp"

#include <algorithm>
#include <array>

#include "recipes/base_image.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 31> kRecipeKeys = {
    "name",         "base",    "python",        "framework", "cuda",
    "packages",     "system",  "env",           "workdir",   "command",
    "bytecode",     "sources", "driver",        "gpus",      "requirements",
    "files",        "run",     "libraries",     "data",      "platforms",
    "overrides",    "exclude", "constraints",   "no-binary", "only-binary",
    "prerelease",   "index",   "prefer-binary", "build",     "dependency-metadata",
    "exclude-newer"};

/// `3.11`: two numbers and a dot.
bool is_python_release(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && text.size() < 16 && all_digits(text.substr(0, dot)) &&
         all_digits(text.substr(dot + 1));
}

bool is_simple_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '-' || c == '.' || c == '/' || c == '_' || c == '=' || is_digit(c) || is_letter(c);
  });
}

/// `python train.py` → `[python, train.py]`, where that is what was meant beyond doubt.
std::string as_word_list(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trim(text)).empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!is_simple_word(word)) return "[python, train.py]";
    words.emplace_back(word);
    text.remove_prefix(word.size());
  }
  return words.empty() ? "[python, train.py]" : '[' + join(words, ", ") + ']';
}

}  // namespace

std::vector<std::string_view> recipe_keys() { return {kRecipeKeys.begin(), kRecipeKeys.end()}; }

void RecipeReader::read(const YamlNode& root) {
  recipe_.workdir = "/workspace";
  if (root.kind != YamlKind::map) {
    mistakes_.add(std::max(root.line, 1), std::max(root.column, 1),
                  root.kind == YamlKind::null ? "the recipe is empty; it needs `name` and `base`"
                                              : "a recipe is a map: lines of `key: value`");
    return;
  }
  for (const auto& [key, value] : values_.members(root, "a recipe", kRecipeKeys)) {
    const bool required = key == "name" || key == "base";
    if (value->kind == YamlKind::null && !required) continue;  // as if the key were not there
    read_member(key, *value);
  }
  check_cuda(root);
  check_demands(root);
  check_image_base(root);
  check_data();
  check_platforms();
  check_steering();
  std::vector<std::string_view> present;
  for (const auto& [key, value] : root.members) {
    present.emplace_back(key.text);
  }
  if (!is_among(present, "name")) mistakes_.add(1, 1, "`name` is missing: the image's name");
  if (!is_among(present, "base")) mistakes_.add(1, 1, "`base` is missing, as in `debian:bookworm`");
}

void RecipeReader::read_member(const std::string& key, const YamlNode& value) {
  using Read = void (RecipeReader::*)(const YamlNode&);
  struct Reading {
    std::string_view key;
    Read read;
  };
  static constexpr std::array<Reading, 31> kReadings = {
      {{"name", &RecipeReader::name},
       {"base", &RecipeReader::base},
       {"python", &RecipeReader::python},
       {"framework", &RecipeReader::framework},
       {"cuda", &RecipeReader::cuda},
       {"packages", &RecipeReader::packages},
       {"system", &RecipeReader::system_packages},
       {"env", &RecipeReader::env},
       {"workdir", &RecipeReader::workdir},
       {"command", &RecipeReader::command},
       {"bytecode", &RecipeReader::bytecode},
       {"sources", &RecipeReader::sources},
       {"files", &RecipeReader::files},
       {"requirements", &RecipeReader::requirements},
       {"driver", &RecipeReader::driver},
       {"gpus", &RecipeReader::gpus},
       {"libraries", &RecipeReader::libraries},
       {"run", &RecipeReader::run},
       {"data", &RecipeReader::data},
       {"platforms", &RecipeReader::platforms},
       {"overrides", &RecipeReader::overrides},
       {"exclude", &RecipeReader::exclude},
       {"constraints", &RecipeReader::constraints},
       {"no-binary", &RecipeReader::no_binary},
       {"only-binary", &RecipeReader::only_binary},
       {"prefer-binary", &RecipeReader::prefer_binary},
       {"prerelease", &RecipeReader::prerelease},
       {"exclude-newer", &RecipeReader::exclude_newer},
       {"index", &RecipeReader::package_indexes},
       {"dependency-metadata", &RecipeReader::dependency_metadata},
       {"build", &RecipeReader::build}}};
  for (const Reading& reading : kReadings) {
    if (reading.key == key) (this->*reading.read)(value);
  }
}

void RecipeReader::name(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`name`", "bert-train");
  if (!text) return;
  recipe_.name = text->text;
  if (is_image_name(text->text)) return;
  values_.mistake(node, fmt::format("`{}` is not an image name: lower-case letters and digits, "
                                    "joined by single `.`, `_`, `-` or `/`",
                                    text->text));
}

void RecipeReader::base(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`base`", "debian:bookworm");
  if (!text) return;
  recipe_.base = *text;
  if (ArchivedImage::parse(text->text)) return image_base(node, text->text);
  const std::size_t colon = text->text.find(':');
  const std::string distribution = text->text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const Distribution& known : distributions()) {
    names.push_back(known.id);
    if (!is_among(known.suites, text->text)) continue;
    values_.mistake(node, fmt::format("write `{0}:{1}` for the base `{1}`", known.id, text->text));
    return;
  }
  if (const Distribution* known = find_distribution(distribution)) {
    recipe_.distribution = distribution;
    recipe_.suite = colon == std::string::npos ? "" : text->text.substr(colon + 1);
    base_suite(node, *known);
  } else if (!nearest(distribution, names).empty()) {
    values_.mistake(node, fmt::format("unknown distribution `{}`{}", distribution,
                                      suggestion(distribution, names)));
  } else {
    image_base(node, text->text);
  }
}

void RecipeReader::base_suite(const YamlNode& node, const Distribution& distribution) {
  const std::string& suite = recipe_.suite;
  if (is_among(distribution.suites, suite)) return;
  const std::string example = distribution.id == "debian" ? "debian:bookworm" : "ubuntu:noble";
  if (suite.empty()) {
    values_.mistake(node, fmt::format("`base` names no suite; write one, as in `{}`", example));
  } else if (is_among(distribution.moving, suite)) {
    values_.mistake(node, fmt::format("`{}` means another release every few years; write the "
                                      "release's own name, as in `{}`",
                                      suite, example));
  } else {
    const std::string near = suggestion(suite, distribution.suites);
    const std::vector<std::string> all(distribution.suites.begin(), distribution.suites.end());
    values_.mistake(node, fmt::format("unknown {} suite `{}`{}", distribution.name, suite,
                                      near.empty() ? "; there are " + join(all, ", ") : near));
  }
}

void RecipeReader::python(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`python`", "\"3.11\"");
  if (!text) return;
  recipe_.python = text;
  if (is_python_release(text->text) && text->text.starts_with("3.")) return;
  values_.mistake(node, fmt::format("`{}` is not a Python version; write major and minor number, "
                                    "as in `\"3.11\"`",
                                    text->text));
}

void RecipeReader::framework(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`framework`", "pytorch>=2.9");
  if (!text) return;
  if (!check_requirement(node, text->text)) return;
  if (!std::get<Requirement>(parse_requirement(text->text)).address.empty()) {
    values_.mistake(node, "a framework comes from an index: write this under `packages`");
    return;
  }
  recipe_.framework = text;
}

void RecipeReader::cuda(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`cuda`", "\"13.0\"");
  if (!text) return;
  recipe_.cuda = text;
  const bool major_only = all_digits(text->text) && text->text.size() == 2;
  if (text->text == "cpu" || major_only || is_python_release(text->text)) return;
  values_.mistake(node, fmt::format("`{}` is not a CUDA release; write one, as in `\"13.0\"`, or "
                                    "`cpu`",
                                    text->text));
}

bool RecipeReader::names_wheels(const YamlNode& root) {
  constexpr std::array<std::string_view, 3> kNamers = {"framework", "packages", "requirements"};
  return std::any_of(root.members.begin(), root.members.end(), [&](const auto& member) {
    const YamlNode& value = member.value;
    const bool empty =
        value.kind == YamlKind::null || (value.kind == YamlKind::list && value.items.empty());
    return !empty && is_among(kNamers, member.key.text);
  });
}

void RecipeReader::check_cuda(const YamlNode& root) {
  if (!recipe_.cuda || recipe_.cuda->text == "cpu" || names_wheels(root)) return;
  mistakes_.add(recipe_.cuda->line, recipe_.cuda->column,
                "`cuda` has nothing to act on: name a `framework`, `packages` or `requirements` "
                "that use it");
}

bool RecipeReader::check_requirement(const YamlNode& node, const std::string& text) {
  const auto read = parse_requirement(text);
  const auto* wrong = std::get_if<RequirementMistake>(&read);
  if (wrong == nullptr) return true;
  const std::string_view before = std::string_view(text).substr(0, wrong->offset);
  const int column = node.column + (node.quoted ? 1 : 0) + static_cast<int>(utf8_length(before));
  mistakes_.add(node.line, column, wrong->message);
  return false;
}

void RecipeReader::packages(const YamlNode& node) {
  recipe_.packages = values_.texts(node, "`packages`", "[transformers, datasets]");
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlKind::scalar || !check_requirement(item, item.text)) continue;
    const auto read = parse_requirement(item.text);
    if (std::get<Requirement>(read).normalised_name() == "pytorch") {
      values_.mistake(item, "the package is called `torch`; or write `framework: pytorch`");
    }
  }
}

void RecipeReader::system_packages(const YamlNode& node) {
  recipe_.system = values_.texts(node, "`system`", "[git, openssh-client]");
  for (const Placed& package : recipe_.system) {
    if (is_debian_wish(package.text)) continue;
    mistakes_.add(package.line, package.column,
                  fmt::format("`{}` is not a Debian package; write its name, as in `git`, or "
                              "`name=version`, or `name/suite`",
                              package.text));
  }
}

void RecipeReader::env(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`env`", {})) {
    if (!is_env_name(key)) {
      values_.mistake(*value, fmt::format("`{}` is not a name for an environment variable", key));
    }
    if (value->kind == YamlKind::null) {
      values_.mistake(*value, fmt::format("`{}` has no value; write `\"\"` for an empty one", key));
      continue;
    }
    if (value->kind != YamlKind::scalar) {
      values_.mistake(*value, fmt::format("the value of `{}` is {}, and a variable holds a text",
                                          key, value->kind == YamlKind::list ? "a list" : "a map"));
      continue;
    }
    if (has_control(value->text, "\t\n")) {
      values_.mistake(*value, fmt::format("`{}` holds control characters", key));
    }
    recipe_.env.emplace(key, value->text);
  }
}

void RecipeReader::workdir(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`workdir`", "/workspace");
  if (!text) return;
  recipe_.workdir = text->text;
  if (is_clean_absolute_path(text->text)) return;
  values_.mistake(node, fmt::format("`{}` is not an absolute path without `.`, `..` and a `/` at "
                                    "its end",
                                    text->text));
}

void RecipeReader::command(const YamlNode& node) {
  const std::string example =
      node.kind == YamlKind::scalar ? as_word_list(node.text) : "[python, train.py]";
  for (const Placed& word : values_.texts(node, "`command`", example)) {
    recipe_.command.push_back(word.text);
    if (has_control(word.text, "\t\n")) {
      mistakes_.add(word.line, word.column, "control characters are not allowed");
    }
  }
  if (!recipe_.command.empty() && recipe_.command.front().empty()) {
    values_.mistake(node, "the first word of `command` names the program and cannot be empty");
  }
}

void RecipeReader::bytecode(const YamlNode& node) { recipe_.bytecode = flag(node, "bytecode"); }

bool RecipeReader::flag(const YamlNode& node, std::string_view key) {
  const bool plain = node.kind == YamlKind::scalar && !node.quoted;
  if (!plain || (node.text != "true" && node.text != "false")) {
    values_.mistake(node, fmt::format("`{}` is `true` or `false`, without quotes", key));
    return true;
  }
  return node.text == "true";
}

}  // namespace mlenv
