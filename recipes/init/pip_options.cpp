#include "recipes/init/pip_options.hpp"

#include <array>

namespace mlenv {
namespace {

constexpr std::array<PipWord, 74> kPipCommandWords = {
    {{"-r", PipMeaning::requirements, true},
     {"--requirement", PipMeaning::requirements, true},
     {"--requirements", PipMeaning::requirements, true},
     {"-e", PipMeaning::editable, true},
     {"--editable", PipMeaning::editable, true},
     {"-i", PipMeaning::index, true},
     {"--index-url", PipMeaning::index, true},
     {"--default-index", PipMeaning::index, true},
     {"--extra-index-url", PipMeaning::extra_index, true},
     {"--index", PipMeaning::extra_index, true},
     {"-f", PipMeaning::links, true},
     {"--find-links", PipMeaning::links, true},
     {"-c", PipMeaning::constraints, true},
     {"--constraint", PipMeaning::constraints, true},
     {"--constraints", PipMeaning::constraints, true},
     {"--build-constraint", PipMeaning::other_key, true, "build: {constraints}"},
     {"--build-constraints", PipMeaning::other_key, true, "build: {constraints}"},
     {"--overrides", PipMeaning::other_key, true, "overrides"},
     {"--override", PipMeaning::other_key, true, "overrides"},
     {"--no-binary", PipMeaning::other_key, true, "no-binary"},
     {"--only-binary", PipMeaning::other_key, true, "only-binary"},
     {"--config-settings", PipMeaning::other_key, true, "build: {config-settings}"},
     {"--config-setting", PipMeaning::other_key, true, "build: {config-settings}"},
     {"-C", PipMeaning::other_key, true, "build: {config-settings}"},
     {"--pre", PipMeaning::prereleases},
     {"--prerelease", PipMeaning::other_key, true, "prerelease"},
     {"--no-deps", PipMeaning::no_key},
     {"--no-dependencies", PipMeaning::no_key},
     {"--no-build-isolation", PipMeaning::other_key, false, "build: {requires: {NAME: [torch]}}"},
     {"--ignore-installed", PipMeaning::no_key},
     {"-I", PipMeaning::no_key},
     {"--use-pep517", PipMeaning::no_key},
     {"--no-use-pep517", PipMeaning::no_key},
     {"--ignore-requires-python", PipMeaning::no_key},
     {"-t", PipMeaning::no_key, true},
     {"--target", PipMeaning::no_key, true},
     {"--prefix", PipMeaning::no_key, true},
     {"--root", PipMeaning::no_key, true},
     {"--global-option", PipMeaning::no_key, true},
     {"--build-option", PipMeaning::no_key, true},
     {"--require-hashes", PipMeaning::of_a_file},
     {"--extra", PipMeaning::extra, true},
     {"--group", PipMeaning::group, true},
     {"--no-index", PipMeaning::nothing},
     {"--proxy", PipMeaning::nothing, true},
     {"--src", PipMeaning::nothing, true},
     {"-w", PipMeaning::nothing, true},
     {"--wheel-dir", PipMeaning::nothing, true},
     {"--timeout", PipMeaning::nothing, true},
     {"--default-timeout", PipMeaning::nothing, true},
     {"--retries", PipMeaning::nothing, true},
     {"--cache-dir", PipMeaning::nothing, true},
     {"--progress-bar", PipMeaning::nothing, true},
     {"--root-user-action", PipMeaning::nothing, true},
     {"--index-strategy", PipMeaning::nothing, true},
     {"--python", PipMeaning::nothing, true},
     {"-p", PipMeaning::nothing, true},
     {"--torch-backend", PipMeaning::nothing, true},
     {"--link-mode", PipMeaning::nothing, true},
     {"--use-feature", PipMeaning::nothing, true},
     {"--use-deprecated", PipMeaning::nothing, true},
     {"--trusted-host", PipMeaning::nothing, true},
     {"--upgrade-strategy", PipMeaning::nothing, true},
     {"--no-cache-dir", PipMeaning::nothing},
     {"--upgrade", PipMeaning::nothing},
     {"--user", PipMeaning::nothing},
     {"--no-cache", PipMeaning::nothing},
     {"--no-input", PipMeaning::nothing},
     {"--prefer-binary", PipMeaning::nothing},
     {"--system", PipMeaning::nothing},
     {"--no-compile", PipMeaning::nothing},
     {"--compile", PipMeaning::nothing},
     {"--force-reinstall", PipMeaning::nothing},
     {"--reinstall", PipMeaning::nothing}}};

}  // namespace

const PipWord* pip_option(std::string_view name) {
  for (const PipWord& one : kPipCommandWords) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

}  // namespace mlenv
