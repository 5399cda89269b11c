// `driver`, `gpus` and `libraries` of a recipe: what its CUDA wheels must fit.
#include <algorithm>
#include <array>

#include "recipes/compat/architecture.hpp"
#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAtLeast = ">=";

/// `580`, `525.60.13`
bool is_driver(std::string_view text) {
  const std::vector<std::string_view> numbers = split(text, '.');
  return numbers.size() <= 3 &&
         std::all_of(numbers.begin(), numbers.end(), [](std::string_view number) {
           return all_digits(number) && number.size() <= 4;
         });
}

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase(out, ' ');
  return out;
}

}  // namespace

std::vector<std::string_view> library_keys() {
  std::vector<std::string_view> names;
  for (const CudaLibrary& one : cuda_libraries()) names.push_back(one.name);
  names.emplace_back("nvcc");
  return names;
}

std::string Recipe::oldest_driver() const {
  return driver ? without_blanks(driver->text).substr(kAtLeast.size()) : std::string{};
}

std::string RecipeLibrary::specifier() const {
  std::string text = without_blanks(version.text);
  if (!is_digit(text.empty() ? ' ' : text.front())) return text;
  return text.ends_with(".*") ? "==" + text : "==" + text + ".*";
}

void RecipeReader::driver(const YamlNode& node) {
  const std::optional<Placed> text = values_.text(node, "`driver`", "\">=580\"");
  if (!text) return;
  const std::string bare = without_blanks(text->text);
  if (bare.starts_with(kAtLeast) && is_driver(std::string_view(bare).substr(kAtLeast.size()))) {
    recipe_.driver = text;
  } else if (is_driver(bare)) {
    values_.mistake(node, fmt::format("`driver` is the oldest driver that must run it; write "
                                      "`\">={}\"`",
                                      bare));
  } else {
    values_.mistake(node,
                    fmt::format("`{}` is not an oldest driver; write one, as in `\">=580\"` or "
                                "`\">=525.60.13\"`",
                                text->text));
  }
}

void RecipeReader::gpus(const YamlNode& node) {
  recipe_.gpus = values_.texts(node, "`gpus`", "[sm_80, sm_90]");
  const auto known = gpu_architectures();
  for (const Placed& gpu : recipe_.gpus) {
    if (std::find(known.begin(), known.end(), gpu.text) != known.end()) continue;
    const std::string meant = meant_architecture(gpu.text);
    mistakes_.add(gpu.line, gpu.column,
                  meant.empty() ? fmt::format("`{}` is not a GPU architecture; write its compute "
                                              "capability, as in `sm_90` for 9.0",
                                              gpu.text)
                                : fmt::format("`{}` is not a GPU architecture; did you mean `{}`?",
                                              gpu.text, meant));
  }
}

void RecipeReader::libraries(const YamlNode& node) {
  const std::vector<std::string_view> names = library_keys();
  for (const auto& [name, value] : values_.members(node, "`libraries`", names)) {
    if (name == "nvcc") {
      compiler(*value);
      continue;
    }
    const std::string what = fmt::format("`{}`", name);
    const bool is_flag =
        value->kind == YamlKind::scalar && (value->text == "true" || value->text == "false");
    const std::optional<Placed> text =
        is_flag ? std::nullopt : values_.text(*value, what, "\"9.*\"");
    if (is_flag) values_.mistake(*value, fmt::format("{} is a version, as in `\"9.*\"`", what));
    if (!text) continue;
    RecipeLibrary library{name, *text};
    const auto read = parse_requirement(name + library.specifier());
    const auto* requirement = std::get_if<Requirement>(&read);
    if (requirement == nullptr || requirement->name != name || requirement->specifier.empty() ||
        !requirement->marker.empty() || !requirement->extras.empty()) {
      values_.mistake(*value, fmt::format("`{}` is not a version; write one, as in `\"9.*\"` or "
                                          "`\">=2.28\"`",
                                          text->text));
      continue;
    }
    recipe_.libraries.push_back(std::move(library));
  }
}

void RecipeReader::compiler(const YamlNode& node) {
  const bool plain = node.kind == YamlKind::scalar && !node.quoted;
  if (!plain || (node.text != "true" && node.text != "false")) {
    values_.mistake(node,
                    "`nvcc` is `true` or `false`, without quotes: its version is the CUDA "
                    "release's");
    return;
  }
  if (node.text == "true") recipe_.compiler = Placed{node.text, node.line, node.column};
}

void RecipeReader::check_demands(const YamlNode& root) {
  if (!recipe_.demands_of_cuda()) return;
  const bool no_cuda = recipe_.cuda && recipe_.cuda->text == "cpu";
  if (names_wheels(root) && !no_cuda) return;
  for (const auto& [key, value] : root.members) {
    constexpr std::array<std::string_view, 3> kDemandsOfCuda = {"driver", "gpus", "libraries"};
    if (std::find(kDemandsOfCuda.begin(), kDemandsOfCuda.end(), key.text) == kDemandsOfCuda.end())
      continue;
    values_.mistake(
        key, no_cuda ? fmt::format("`{}` is about CUDA, and `cuda: cpu` asks for none", key.text)
                     : fmt::format("`{}` has nothing to act on: name a `framework`, `packages` or "
                                   "`requirements` that use CUDA",
                                   key.text));
  }
}

}  // namespace mlenv
