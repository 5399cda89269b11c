#include "recipes/recipe_edit.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "recipes/distribution.hpp"
#include "recipes/list_edit.hpp"
#include "recipes/lock.hpp"
#include "recipes/logins.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// The keys behind which a new list goes, as docs/recipe.md orders them.
constexpr std::array<std::string_view, 6> kEditAnchors = {"name",      "base", "python",
                                                          "framework", "cuda", "packages"};

const std::vector<Placed>& items_of(const Recipe& recipe, PackageList list) {
  return list == PackageList::packages ? recipe.packages : recipe.system;
}

std::vector<std::string> texts_of(const Recipe& recipe, PackageList list) {
  std::vector<std::string> texts;
  for (const Placed& item : items_of(recipe, list)) texts.push_back(item.text);
  return texts;
}

Error bad_package(PackageList list, std::string_view word, std::string_view why) {
  const bool python = list == PackageList::packages;
  return usage_error("bad-package", "`{}` is not a {}", without_logins(word),
                     python ? "Python requirement" : "Debian package")
      .because(std::string(why))
      .hint(python ? "write `name`, `name>=1.2`, `name[extra]` or `name @ ADDRESS`"
                   : "write `name`, `name=version` or `name/suite`");
}

Requirement requirement_of(std::string_view word) {
  const auto read = parse_requirement(trim(word));
  if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
    throw bad_package(PackageList::packages, word, wrong->message);
  }
  Requirement requirement = std::get<Requirement>(read);
  if (requirement.normalised_name() == "pytorch") {
    throw usage_error("bad-package", "PyTorch's package is not called `{}`", requirement.name)
        .hint("write `torch`; or `framework: pytorch` in the recipe");
  }
  return requirement;
}

void check_debian(std::string_view word) {
  const std::size_t pin = word.find_first_of("=/");
  if (!is_debian_name(parse_debian_wish(word).name)) {
    throw bad_package(PackageList::system, word,
                      "a name is two or more lower-case letters, digits, `+`, `-` or `.`");
  }
  if (pin == std::string_view::npos && !is_debian_wish(word)) {
    throw bad_package(
        PackageList::system, word,
        fmt::format("`{}` is not an architecture", parse_debian_wish(word).architecture));
  }
  if (!is_debian_wish(word)) {
    throw bad_package(PackageList::system, word,
                      fmt::format("`{}` is not a Debian {}", word.substr(pin + 1),
                                  word[pin] == '=' ? "version" : "suite"));
  }
}

/// By which two items are of one package. Items of a recipe are well formed.
std::string item_name(PackageList list, std::string_view item) {
  if (list == PackageList::system) return std::string(parse_debian_wish(item).name);
  return std::get<Requirement>(parse_requirement(item)).normalised_name();
}

std::vector<std::size_t> places_of(const Recipe& recipe, PackageList list, std::string_view name) {
  std::vector<std::size_t> found;
  const std::vector<Placed>& items = items_of(recipe, list);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (item_name(list, items[i].text) == name) found.push_back(i);
  }
  return found;
}

/// What the word does not say stays: a pin where only an architecture is asked for, and the
/// reverse.
std::string merged_wishes(std::string_view item, std::string_view word) {
  DebianWish wish = parse_debian_wish(item);
  const DebianWish asked = parse_debian_wish(word);
  if (!asked.architecture.empty()) wish.architecture = asked.architecture;
  if (!asked.version.empty() || !asked.suite.empty()) {
    wish.version = asked.version;
    wish.suite = asked.suite;
  }
  std::string text{wish.name};
  if (!wish.architecture.empty()) text += fmt::format(":{}", wish.architecture);
  if (!wish.version.empty()) text += fmt::format("={}", wish.version);
  if (!wish.suite.empty()) text += fmt::format("/{}", wish.suite);
  return text;
}

/// What the item becomes when `word` is asked for too.
std::string merged_item(PackageList list, const std::string& item, const std::string& word) {
  if (list == PackageList::system) return merged_wishes(item, word);
  Requirement old = std::get<Requirement>(parse_requirement(item));
  const Requirement asked = requirement_of(word);
  const Requirement before = old;
  if (!asked.specifier.empty() || !asked.address.empty()) {
    old.specifier = asked.specifier;
    old.address = asked.address;
  }
  if (!asked.extras.empty()) old.extras = asked.extras;
  if (!asked.marker.empty()) old.marker = asked.marker;
  return old.str() == before.str() ? item : old.str();
}

/// Which item a word is about; nullopt: a new one.
std::optional<std::size_t> place_for(const Recipe& recipe, PackageList list,
                                     const std::string& word) {
  const std::vector<std::size_t> places = places_of(recipe, list, item_name(list, word));
  if (places.empty()) return std::nullopt;
  if (places.size() == 1 || list == PackageList::system) return places.front();
  const Requirement asked = requirement_of(word);
  for (const std::size_t at : places) {
    const auto item = std::get<Requirement>(parse_requirement(recipe.packages[at].text));
    if (item.marker == asked.marker) return at;
  }
  if (asked.marker.empty() && asked.specifier.empty() && asked.extras.empty()) {
    return places.front();
  }
  if (!asked.marker.empty()) return std::nullopt;
  throw usage_error("bad-package", "`{}` has {} requirements for `{}`, each with a marker",
                    recipe.path.string(), places.size(), asked.name)
      .hint(fmt::format("say which one is meant: `{} ; MARKER`", asked.str()));
}

/// Whether the list is one of so many texts; else its recipe's mistakes would be about lines that
/// nobody wrote.
bool has_scalars(const YamlDocument& document, std::string_view key, std::size_t count) {
  for (const YamlMember& member : document.root.members) {
    if (member.key.text != key) continue;
    const std::vector<YamlNode>& items = member.value.items;
    return items.size() == count && std::all_of(items.begin(), items.end(), [](const auto& item) {
             return item.kind == YamlNode::Kind::scalar;
           });
  }
  return count == 0;
}

/// The recipe of the new text, which must have these items and no other difference.
Recipe proven(const Recipe& before, PackageList list, const std::optional<std::string>& text,
              const std::vector<std::string>& items) {
  const auto unknown_layout = [&] {
    return failure("recipe-layout", "`{}` writes `{}` in a way that mlenv cannot change",
                   before.path.string(), key_of(list))
        .hint("make the change in the file, then run `mlenv lock`");
  };
  if (!text) throw unknown_layout();
  const YamlDocument document = parse_yaml(*text);
  if (!document.complete || !document.mistakes.empty()) throw unknown_layout();
  if (!has_scalars(document, key_of(list), items.size())) throw unknown_layout();
  Recipe after = parse_recipe(*text, before.path);
  take_listed(after, before.listed);
  Request wanted = request_of(before);  // its lists are sorted; ours are compared in order
  const Request found = request_of(after);
  auto& own = list == PackageList::packages ? wanted.packages : wanted.system;
  own = list == PackageList::packages ? found.packages : found.system;
  const bool same = texts_of(after, list) == items && found == wanted &&
                    settings_of(after) == settings_of(before) && after.files == before.files &&
                    after.requirements == before.requirements;
  if (!same) throw unknown_layout();
  return after;
}

PackageEdit add_one(Recipe& recipe, PackageList list, const std::string& word) {
  const bool python = list == PackageList::packages;
  const std::string item = python ? requirement_of(word).str() : word;
  const std::optional<std::size_t> place = place_for(recipe, list, item);
  std::vector<std::string> items = texts_of(recipe, list);
  const ListEdit edit(recipe.source, key_of(list));
  if (!place) {
    const std::size_t anchors = kEditAnchors.size() - (python ? 1 : 0);
    items.push_back(item);
    recipe = proven(recipe, list, edit.append(item, std::span(kEditAnchors).first(anchors)), items);
    return {item_name(list, item), std::nullopt, item};
  }
  const std::string before = items[*place];
  items[*place] = merged_item(list, before, item);
  PackageEdit change{item_name(list, item), before, items[*place]};
  if (!change.none()) {
    recipe = proven(recipe, list, edit.replace(*place, items[*place]), items);
  }
  return change;
}

Error not_there(const Recipe& recipe, PackageList list, const std::string& name) {
  Error error = failure("not-found", "`{}` has no `{}` in its `{}`", recipe.path.string(), name,
                        key_of(list));
  const PackageList other =
      list == PackageList::packages ? PackageList::system : PackageList::packages;
  const std::vector<Placed>& others = items_of(recipe, other);
  if (std::any_of(others.begin(), others.end(),
                  [&](const Placed& item) { return item_name(other, item.text) == name; })) {
    return std::move(error).hint(other == PackageList::system
                                     ? "it is in `system`: add `--system`"
                                     : "it is in `packages`: leave `--system` out");
  }
  std::vector<std::string> names;
  for (const Placed& item : items_of(recipe, list)) names.push_back(item_name(list, item.text));
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest(name, candidates);
  if (!near.empty()) return std::move(error).hint(did_you_mean(near));
  if (list == PackageList::packages && recipe.framework &&
      item_name(list, recipe.framework->text) == name) {
    return std::move(error).hint("it is the recipe's `framework`: change that in the file");
  }
  return error;
}

PackageEdit remove_one(Recipe& recipe, PackageList list, const std::string& word) {
  const std::string name = item_name(list, word);
  std::vector<std::size_t> places = places_of(recipe, list, name);
  if (places.empty()) throw not_there(recipe, list, name);
  std::string before;
  while (!places.empty()) {
    std::vector<std::string> items = texts_of(recipe, list);
    const std::size_t at = places.back();
    before = items[at] + (before.empty() ? "" : ", ") + before;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
    const ListEdit edit(recipe.source, key_of(list));
    recipe = proven(recipe, list, edit.remove(at), items);
    places.pop_back();
  }
  return {name, before, std::nullopt};
}

/// Before anything is done: each word can be one of the list.
void check_words(PackageList list, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (list == PackageList::system) {
      check_debian(word);
    } else {
      (void)requirement_of(word);
    }
  }
}

}  // namespace

std::string_view key_of(PackageList list) {
  return list == PackageList::packages ? "packages" : "system";
}

RecipeEdit add_packages(const Recipe& recipe, PackageList list,
                        const std::vector<std::string>& words) {
  check_words(list, words);
  RecipeEdit edit{recipe, {}};
  for (const std::string& word : words) {
    edit.changes.push_back(add_one(edit.recipe, list, word));
  }
  return edit;
}

RecipeEdit remove_packages(const Recipe& recipe, PackageList list,
                           const std::vector<std::string>& names) {
  check_words(list, names);
  for (const std::string& name : names) {
    const bool bare = list == PackageList::system ? name.find_first_of("=/") == std::string::npos
                                                  : requirement_of(name).name == trim(name);
    if (bare) continue;
    throw usage_error("bad-package", "`{}` is more than a name", name)
        .hint(fmt::format("a package is removed whatever its version: write `{}`",
                          list == PackageList::system ? name.substr(0, name.find_first_of("=/"))
                                                      : requirement_of(name).name));
  }
  RecipeEdit edit{recipe, {}};
  for (const std::string& name : names) {
    edit.changes.push_back(remove_one(edit.recipe, list, name));
  }
  return edit;
}

}  // namespace mlenv
