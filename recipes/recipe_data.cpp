// `data:` of a recipe.
#include <algorithm>
#include <array>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 4> kDataKeys = {"from", "digest", "stage", "to"};
constexpr std::string_view kDataExample = "{corpus: {from: ./corpus, digest: \"sha256:…\"}}";

bool is_digest(std::string_view text) {
  try {
    Digest::parse(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string_view> data_set_keys() { return {kDataKeys.begin(), kDataKeys.end()}; }

bool is_data(const Recipe& recipe, std::string_view path) {
  return std::any_of(recipe.data.begin(), recipe.data.end(),
                     [&](const RecipeData& one) { return is_beneath(path, one.from); });
}

void RecipeReader::data(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) {
    values_.mistake(node, fmt::format("`data` is a map of data sets, as in `{}`", kDataExample));
    return;
  }
  values_.members(node, "`data`", {});  // duplicates and keys that are no text
  for (const auto& [key, value] : node.members) {
    if (key.kind != YamlNode::Kind::scalar) continue;
    if (!is_secret_id(key.text)) {
      values_.mistake(key, fmt::format("`{}` is no name for a data set: letters, digits, `.`, `_` "
                                       "and `-`",
                                       key.text));
    }
    RecipeData one;
    one.name = {key.text, key.line, key.column};
    one.to = "/data/" + key.text;
    if (value.kind != YamlNode::Kind::map) {
      values_.mistake(value.kind == YamlNode::Kind::null ? key : value,
                      fmt::format("a data set is a map, as in `{}`", kDataExample));
      continue;
    }
    data_set(value, one);
    recipe_.data.push_back(std::move(one));
  }
}

void RecipeReader::data_set(const YamlNode& node, RecipeData& one) {
  for (const auto& [key, value] : values_.members(node, "a data set", kDataKeys)) {
    const std::optional<Placed> text = values_.text(*value, '`' + key + '`', "./corpus");
    if (!text) continue;
    if (key == "from") {
      data_source(*value, text->text, one);
    } else if (key == "digest") {
      one.digest = text->text;
      if (!is_digest(text->text)) {
        values_.mistake(*value, fmt::format("`{}` is no digest: `sha256:` and 64 hex digits; leave "
                                            "it out, and the message gives the right one",
                                            text->text));
      }
    } else if (key == "stage") {
      one.stage = text->text;
      if (text->text != "node") {
        values_.mistake(*value, fmt::format("unknown `stage` `{}`; there is `node`: copied to each "
                                            "machine of a run",
                                            text->text));
      }
    } else {
      data_target(*value, text->text, one);
    }
  }
  if (one.from.empty()) {
    values_.mistake(node, "the data set does not say where it is; write `from: ./corpus`");
  }
}

void RecipeReader::data_source(const YamlNode& node, const std::string& text, RecipeData& one) {
  one.from = fs::path(text).lexically_normal().string();
  while (one.from.size() > 1 && one.from.ends_with('/')) one.from.pop_back();
  if (trim(text).empty() || has_control(text) || text.front() == '~') {
    one.from = ".";
    values_.mistake(node, fmt::format("`{}` is no path; write one, as in `./corpus`", text));
  } else if (one.from == "." || one.from == "/") {
    values_.mistake(node, fmt::format("`{}` is no folder of data alone", text));
  }
}

void RecipeReader::data_target(const YamlNode& node, const std::string& text, RecipeData& one) {
  one.to = text;
  const std::string reserved = reserved_place(text);
  if (!is_clean_absolute_path(text) || text == "/") {
    values_.mistake(node, fmt::format("`{}` is not an absolute path without `.`, `..` and a `/` at "
                                      "its end: where in the container, as in `/data/corpus`",
                                      text));
  } else if (!reserved.empty()) {
    values_.mistake(node, "no data can be at " + reserved);
  }
}

/// Data sets that meet, and `files` that would copy them.
void RecipeReader::check_data() {
  for (std::size_t i = 0; i < recipe_.data.size(); ++i) {
    const RecipeData& one = recipe_.data[i];
    for (std::size_t j = 0; j < i; ++j) {
      const RecipeData& other = recipe_.data[j];
      if (!is_beneath(one.to, other.to) && !is_beneath(other.to, one.to)) continue;
      mistakes_.add(one.name.line, one.name.column,
                    fmt::format("`{}` and `{}` meet at `{}` and `{}`", other.name.text,
                                one.name.text, other.to, one.to));
    }
  }
  for (const RecipeFile& file : recipe_.files) {
    if (!is_data(recipe_, file.source.text)) continue;
    mistakes_.add(file.source.line, file.source.column,
                  fmt::format("`{}` is data, which is never in the image", file.source.text));
  }
}

}  // namespace mlenv
