#pragma once
// Files of a project in a folder of their own, converted as `mlenv init --from` does.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {

class ConversionTest : public testing::Test {
 private:
  static auto says(std::string_view text) {
    return [text](const LeftOut& one) { return sentence(one).find(text) != std::string::npos; };
  }

 protected:
  void put(const std::string& name, std::string_view text) const {
    make_folders((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text, false);
  }
  /// Its recipe, which is held against the reader of recipes.
  Draft of(const std::string& name) const {
    Draft draft = convert(folder_.path() / name, folder_.path());
    Draft whole = draft;
    if (whole.name.empty()) whole.name = "x";
    choose_for_host(whole, {"debian:bookworm", ""});
    const std::string text = render_draft(whole, "recipe.yaml");
    EXPECT_NO_THROW(parse_recipe(text, "recipe.yaml")) << text;
    return draft;
  }
  Draft of_docker(const std::string& text) const {
    put("Dockerfile", text);
    return of("Dockerfile");
  }
  /// Whether it tells that something with that text was left out.
  static bool tells(const Draft& draft, std::string_view text) {
    return std::any_of(draft.left_out.begin(), draft.left_out.end(), says(text));
  }
  /// How often it tells of it, in notes too.
  static std::size_t told(const Draft& draft, std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(draft.left_out.begin(), draft.left_out.end(), says(text)) +
        std::count_if(draft.notes.begin(), draft.notes.end(), says(text)));
  }
  static Strings steps(const Draft& draft) {
    Strings all;
    for (const DraftStep& one : draft.run) all.push_back(one.command);
    return all;
  }

  TemporaryFolder folder_{temporary_root()};
};

}  // namespace mlenv
