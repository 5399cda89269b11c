// setup.py and setup.cfg: what they say in plain words. No code is run.
#include <fnmatch.h>
#include <algorithm>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/project_path.hpp"
#include "recipes/setup_py.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kComputed =
    "the setup file computes it, and no code is run here: write into `packages` what is needed";

constexpr std::string_view kConditional =
    "added under a condition that only running the setup file decides: write into `packages` what "
    "the image needs";

constexpr std::string_view kExtras =
    "extras, which nothing asks for: add with `mlenv add` what is needed";

/// As setuptools reads a line of requirements: what stands behind ` #` is a comment.
std::string_view without_comment(std::string_view text) {
  return trim(text.starts_with('#') ? "" : text.substr(0, text.find(" #")));
}

/// The project's files of such a name, in the order of their names.
std::vector<fs::path> listed_files(const ConversionSource& source,
                                   const SetupFacts::Listed& listed) {
  const fs::path whole = source.path.parent_path() / listed.pattern;
  const std::string pattern = whole.filename().string();
  std::vector<fs::path> found;
  std::error_code unknown;
  if (leads_out(whole.parent_path(), source.path.parent_path())) return found;
  for (const auto& entry : fs::directory_iterator(whole.parent_path(), unknown)) {
    const fs::path& path = entry.path();
    const bool fits = ::fnmatch(pattern.c_str(), path.filename().c_str(), FNM_PERIOD) == 0 &&
                      (listed.only.empty() || path.stem() == listed.only);
    const std::string ending = path.extension().string();
    if (fits && (ending == ".txt" || ending == ".in") && entry.is_regular_file(unknown)) {
      found.push_back(path);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Whether some were read.
bool read_listed(const ConversionSource& source, const SetupFacts& facts, Conversion& to) {
  std::vector<std::string> names;
  for (const SetupFacts::Listed& listed : facts.listed) {
    for (const fs::path& path : listed_files(source, listed)) {
      if (to.has_read(path)) continue;
      to.requirements(path, path.lexically_normal().string(),
                      read_small_file(path, size_limit::kConverted));
      names.push_back(path.lexically_relative(source.path.parent_path()).string());
    }
    if (!names.empty()) continue;
    to.leave_out({source.shown, listed.line}, "install_requires",
                 fmt::format("it is read from files `{}`, and there is none here{}{}{}",
                             listed.pattern, listed.only.empty() ? "" : " that is called `",
                             listed.only, listed.only.empty() ? "" : "`"));
  }
  if (names.empty()) return false;
  to.note({source.shown, facts.line}, "install_requires",
          fmt::format("taken from files that the setup file lists: `{}`", join(names, "`, `")));
  return true;
}

void tell_listed_extras(const ConversionSource& source, const SetupFacts& facts, Conversion& to) {
  for (const SetupFacts::Listed& listed : facts.listed_extras) {
    for (const fs::path& path : listed_files(source, listed)) {
      if (to.has_read(path) || facts.extras.contains(path.stem().string())) continue;
      to.leave_out_with_others({source.shown, listed.line}, path.stem().string(), kExtras);
    }
  }
}

void convert_setup_facts(const ConversionSource& source, const SetupFacts& facts, Conversion& to) {
  if (facts.name) to.draft.name = image_name_from(*facts.name);
  if (facts.python) to.python_range({source.shown, facts.line}, *facts.python);
  if (facts.requires_) {
    for (const std::string& item : facts.requires_->items) {
      const std::string_view text = without_comment(item);
      if (!text.empty()) to.python_package({source.shown, facts.requires_->line}, text);
    }
  }
  bool read = false;
  for (const std::string& name : facts.files) {
    const fs::path path = source.path.parent_path() / name;
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) continue;
    to.requirements(path, path.lexically_normal().string(),
                    read_small_file(path, size_limit::kConverted));
    read = true;
  }
  const bool listed = read_listed(source, facts, to);
  if (facts.computed && !read && facts.listed.empty()) {
    to.leave_out({source.shown, facts.line}, "install_requires", kComputed);
  } else if (facts.computed && read && !listed) {
    to.note({source.shown, facts.line}, "install_requires",
            fmt::format("taken from what it names: `{}`", join(facts.files, "`, `")));
  }
  for (const auto& [text, line] : facts.conditional) {
    to.leave_out_with_others({source.shown, line}, text, kConditional);
  }
  for (const auto& [name, line] : facts.extras) {
    to.leave_out_with_others({source.shown, line}, name, kExtras);
  }
  tell_listed_extras(source, facts, to);
  if (!facts.ext_modules.empty()) {
    to.note({source.shown, 0}, "ext_modules",
            "the project compiles code: `NAME @ .` in `packages` builds it, with "
            "`system: [build-essential, python3-dev]`");
  }
}

}  // namespace

void convert_setup(const ConversionSource& source, Conversion& to) {
  to.draft.wants_python = true;
  const bool cfg = source.path.filename() == "setup.cfg";
  const SetupFacts facts = cfg ? read_setup_cfg(source.text) : read_setup_py(source.text);
  const fs::path beside = source.path.parent_path() / (cfg ? "setup.py" : "setup.cfg");
  std::error_code unknown;
  if (!cfg && !facts.calls_setup) {
    return to.leave_out({source.shown, 1}, source.shown, "it calls no `setup(…)`");
  }
  convert_setup_facts(source, facts, to);
  if (cfg && !facts.requires_ && !facts.computed && !fs::is_regular_file(beside, unknown)) {
    to.leave_out({source.shown, 0}, source.shown, "it names no `install_requires`");
  }
  // One of the two often says nothing but `setup()`.
  const bool silent = !facts.requires_ && !facts.computed;
  if (silent && !cfg && fs::is_regular_file(beside, unknown)) {
    const ConversionSource other = read_source(beside, to);
    convert_setup_facts(other, read_setup_cfg(other.text), to);
  }
}

}  // namespace mlenv
