#include "recipes/ignore.hpp"

#include <fnmatch.h>
#include <algorithm>
#include <array>

#include "base/paths.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/secret_names.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// What nobody wants in an image.
constexpr std::array<const char*, 6> kClutter = {".git",        ".hg",   ".svn",
                                                 "__pycache__", ".venv", "*.built"};
bool is_clutter(std::string_view path) {
  const std::string last{last_part(path)};
  return std::any_of(kClutter.begin(), kClutter.end(),
                     [&](const char* name) { return ::fnmatch(name, last.c_str(), 0) == 0; });
}

/// As Go's path/filepath.Clean, without the `/` in front: Docker takes `/a` for `a`.
std::string clean(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, '/')) {
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.emplace_back(part);
    }
  }
  return join(parts, "/");
}

}  // namespace

IgnoreRules IgnoreRules::parse(std::string_view text, const fs::path& shown_path) {
  IgnoreRules rules;
  Mistakes mistakes{shown_path, std::string(text)};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string_view pattern = trim(whole);
    if (whole.starts_with('#') || pattern.empty()) continue;
    const auto place = [&](std::string_view rest) {
      return static_cast<int>(utf8_length(whole.substr(0, whole.find(rest)))) + 1;
    };
    const int column = place(pattern);
    const bool exception = pattern.starts_with('!');
    if (exception) pattern = trim(pattern.substr(1));
    if (pattern.empty()) {
      mistakes.add(line, column, "`!` makes an exception, and no pattern follows it");
      continue;
    }
    if (pattern.find('\0') != std::string_view::npos) {
      mistakes.add(line, column, "a pattern holds a NUL, as no path does");
      continue;
    }
    const std::string cleaned = clean(pattern);
    if (cleaned.empty()) continue;  // `.` and `/`: the project itself, which Docker passes over
    IgnorePattern::Mistake mistake;
    IgnorePattern compiled{cleaned, mistake};
    if (!mistake.message.empty()) {
      mistakes.add(line, column, fmt::format("`{}` is no pattern: {}", pattern, mistake.message));
      continue;
    }
    rules.rules_.push_back({std::move(compiled), exception});
  }
  if (!mistakes.empty()) throw mistakes.error("ignore-invalid");
  return rules;
}

IgnoreRules::Fate IgnoreRules::judge(std::string_view path, const Fate& parent) const {
  Fate fate;
  fate.matched.resize(rules_.size());
  bool named = false;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    const bool above = !parent.matched.empty() && parent.matched[i];
    const bool here = (!above || rule.exception) && rule.pattern.matches(path);
    named = named || (here && rule.exception && rule.pattern.names_something());
    // As in Docker, an exception counts from where something is left out on.
    fate.matched[i] = above || (here && rule.exception == fate.ignored);
    if (fate.matched[i]) fate.ignored = !rule.exception;
  }
  const bool secret = names_secret(path);
  fate.withheld = (parent.withheld || secret || is_clutter(path)) && !named;
  fate.inherited = parent.withheld;
  fate.secret = secret && fate.withheld && !fate.inherited;
  return fate;
}

bool IgnoreRules::may_return(std::string_view folder, const Fate& fate) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule.exception && rule.pattern.may_match_in(folder) &&
           (!fate.withheld || fate.inherited || rule.pattern.mentions(last_part(folder)));
  });
}

ProjectIgnores read_ignores(const fs::path& folder) {
  for (const char* name : {".mlenvignore", ".dockerignore"}) {
    const fs::path path = (folder / name).lexically_normal();
    if (const auto text = read_small_file_if_exists(path, size_limit::kIgnoreFile)) {
      return {IgnoreRules::parse(*text, path), name};
    }
  }
  return {{}, ".mlenvignore"};
}

}  // namespace mlenv
