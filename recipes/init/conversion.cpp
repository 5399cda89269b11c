#include "recipes/init/conversion.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "recipes/compat/framework_cuda.hpp"
#include "recipes/distribution.hpp"
#include "recipes/foreign_packages.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/conda_names.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/named_requirement.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/marker.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

using Framework = Conversion::Framework;
constexpr std::array<Framework, 6> kFrameworkPackages = {{{"torch", "pytorch", ""},
                                                          {"pytorch", "pytorch", ""},
                                                          {"tensorflow", "tensorflow", ""},
                                                          {"tensorflow-cpu", "tensorflow", "cpu"},
                                                          {"tensorflow-gpu", "tensorflow", "gpu"},
                                                          {"jax", "jax", ""}}};

const Framework* known_framework(std::string_view package) {
  for (const Framework& one : kFrameworkPackages) {
    if (one.package == package) return &one;
  }
  return nullptr;
}

/// CUDA major that an extra of a framework asks for: `cuda12`, `cuda12_pip`, `cuda12-local`.
std::string cuda_of_extra(std::string_view extra) {
  if (extra == "and-cuda") return "12";
  if (!extra.starts_with("cuda")) return {};
  const std::string_view rest = extra.substr(4);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

/// What only other systems have: their wheels are for these alone.
constexpr std::array<std::string_view, 24> kOfOtherSystems = {
    "pywin32",          "pypiwin32",
    "pywinpty",         "wmi",
    "windows-curses",   "win32-setctime",
    "winshell",         "win10toast",
    "pywinauto",        "tensorflow-intel",
    "comtypes",         "wincertstore",
    "tensorflow-macos", "tensorflow-metal",
    "jax-metal",        "appnope",
    "jax-mps",          "appscript",
    "mlx-metal",        "applaunchservices",
    "rubicon-objc",     "rumps",
    "py2app",           "tensorflow-directml-plugin"};
constexpr std::string_view kOtherSystem =
    "packages for Windows or macOS alone, which images are not";
constexpr std::string_view kCondaFolder =
    "conda's build folders, which no other machine has: without them these packages are the "
    "index's, in any version";
constexpr std::string_view kCondaOwn =
    "libraries and tools of conda's: they are not asked of PyPI, where another project may be "
    "called so";

constexpr std::string_view kCpuBuilds =
    "builds named `+cpu` come from an index of their own: name it in `sources`, and write `cuda: "
    "cpu`";
constexpr std::string_view kReleaseBuilds =
    "builds named so come from an index of their own; `cuda` asks for the release instead";
constexpr std::string_view kGitProtocol =
    "`git://` is not encrypted, and most hosts serve it no more: the same address by https is "
    "taken";

constexpr std::string_view kNoExtra = "packages of extras, which nothing asks for";

bool speaks_of_system(std::string_view marker) {
  constexpr std::array<std::string_view, 5> kWords = {"sys_platform", "platform_system", "os_name",
                                                      "sys.platform", "os.name"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view one) { return says(marker, one); });
}

/// `==2.0.1` where `>=1.8` comes later: pip keeps what is there.
bool stays_installed(const Requirement& there, const Requirement& asked) {
  if (!there.specifier.starts_with("==") ||
      there.specifier.find_first_of(",*") != std::string::npos || !asked.address.empty() ||
      asked.specifier.empty()) {
    return false;
  }
  std::string_view version = std::string_view(there.specifier).substr(2);
  while (version.starts_with('=') || version.starts_with(' ')) version.remove_prefix(1);
  return version_satisfies(version, asked.specifier);
}

/// By its address.
bool is_wheel_of_another_system(const Requirement& requirement) {
  if (requirement.address.empty()) return false;
  std::string file = requirement.address.substr(requirement.address.rfind('/') + 1);
  file.erase(std::min(file.find('#'), file.size()));
  const auto wheel = parse_wheel_name(file);
  return wheel && !runs_on(*wheel, "x86_64") && !runs_on(*wheel, "aarch64");
}

/// `torch==2.7.1+${CUDA}` without what a variable of the machine decides.
std::string without_local_variable(std::string_view text) {
  const std::size_t plus = text.find("+${");
  const std::size_t end = plus == std::string_view::npos ? plus : text.find('}', plus);
  if (end == std::string_view::npos) return std::string(text);
  return std::string(text.substr(0, plus)) + std::string(text.substr(end + 1));
}

/// `git+https://…` of `git+git://…` and of a plain `git://…`.
std::string without_git_protocol(std::string_view text) {
  constexpr std::string_view kGit = "git://";
  const std::size_t at = text.find(kGit);
  if (at == std::string_view::npos || (at > 0 && text[at - 1] != '+' && !is_blank(text[at - 1]))) {
    return std::string(text);
  }
  const bool plus = text.substr(0, at).ends_with("git+");
  return fmt::format("{}{}https://{}", text.substr(0, at), plus ? "" : "git+",
                     text.substr(at + kGit.size()));
}

}  // namespace

std::string image_name_from(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const char lower = to_lower(c);
    if (is_lower(lower) || is_digit(lower)) {
      name += lower;
    } else if (!name.empty() && name.back() != '-') {
      name += lower == '.' || lower == '_' ? lower : '-';
      const std::string_view before = std::string_view(name).substr(0, name.size() - 1);
      if (before.ends_with('.') || before.ends_with('_')) name.pop_back();
    }
  }
  while (!name.empty() && !is_alphanumeric(name.back())) name.pop_back();
  return is_image_name(name) ? name : "environment";
}

void Conversion::check_source(const fs::path& path) const {
  if (holds(path)) return;
  throw usage_error("source-invalid", "`{}` leads out of its folder", path.string())
      .because("a recipe goes where others read it, and would hold lines of a file elsewhere")
      .hint("name the file that it leads to");
}

void Conversion::check_count(std::size_t count, std::string_view what, std::size_t most) const {
  if (count <= most) return;
  throw failure("too-large", "`{}` has more than {} {}", draft.source, most, what)
      .hint("a recipe is to be read by people: convert what is needed of it");
}

/// With the source's own words for paths, where they stand as whole words.
std::string Conversion::as_written(std::string_view text) const {
  constexpr std::string_view kAround = " \t\n'\"=;&|()`";
  std::string shown;
  while (!text.empty() && !written_as_.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kAround), text.size());
    shown += text.substr(0, begin);
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kAround), text.size());
    const std::string word(text.substr(0, end));
    const auto found = written_as_.find(word);
    shown += found == written_as_.end() ? word : found->second;
    text.remove_prefix(end);
  }
  return shown.append(text);
}

void Conversion::leave_out(const SourcePlace& place, std::string_view text, std::string_view why) {
  // Nobody has to do anything about these.
  if (why.starts_with("not needed")) return leave_out_with_others(place, text, why);
  if (!told_.insert(fmt::format("{}:{}:{}:{}", place.file, place.line, text, why)).second) return;
  check_count(draft.left_out.size() + 1, "lines that a recipe cannot say");
  draft.left_out.push_back({place, shown_text(as_written(text)), shown_sentence(why)});
}

void Conversion::leave_out_with_others(const SourcePlace& place, std::string_view text,
                                       std::string_view why) {
  const std::string shown = shown_text(as_written(text));
  for (LeftOut& one : together_) {
    if (one.why != why || one.place.file != place.file) continue;
    if (!told_.insert(fmt::format("{}:{}:{}", place.file, shown, why)).second) return;
    one.text += ", " + shown;
    check_count(one.text.size() / 4, "packages that a recipe cannot say");
    return;
  }
  told_.insert(fmt::format("{}:{}:{}", place.file, shown, why));
  together_.push_back({place, shown, std::string(why)});
}

void Conversion::note(const SourcePlace& place, std::string_view text, std::string_view why) {
  check_count(draft.notes.size() + 1, "lines to look at");
  draft.notes.push_back({place, shown_text(as_written(text)), shown_sentence(why)});
}

void Conversion::package_item(const Requirement& requirement) {
  const std::string text = requirement.str();
  std::vector<std::string>& packages = draft.packages;
  constexpr std::size_t kMostCompared = 500;
  for (std::string& known : packages) {
    if (!wins(requirement) || packages.size() > kMostCompared) break;
    const auto read = parse_requirement(known);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr || !one->marker.empty() || !requirement.marker.empty() ||
        one->normalised_name() != requirement.normalised_name()) {
      continue;
    }
    const bool newer = (!requirement.specifier.empty() || !requirement.address.empty()) &&
                       !stays_installed(*one, requirement);
    Requirement both = newer ? requirement : *one;
    for (const std::string& extra : newer ? one->extras : requirement.extras) {
      const auto& has = both.extras;
      if (std::find(has.begin(), has.end(), extra) == has.end()) both.extras.push_back(extra);
    }
    known = both.str();
    return;
  }
  if (std::find(packages.begin(), packages.end(), text) == packages.end()) packages.push_back(text);
  check_count(packages.size(), "packages");
}

void Conversion::local_version(const SourcePlace& place, Requirement& requirement) {
  const std::size_t plus = requirement.specifier.find('+');
  if (plus == std::string::npos) return;
  const std::size_t end =
      std::min(requirement.specifier.find(',', plus), requirement.specifier.size());
  const std::string local = requirement.specifier.substr(plus + 1, end - plus - 1);
  const std::string release = release_of_tag(local);
  if (local == "cpu" || !release.empty()) {
    local_builds_.push_back({place, requirement.str(), requirement.normalised_name(),
                             local == "cpu" ? kCpuBuilds : kReleaseBuilds});
    check_count(local_builds_.size(), "packages");
  } else {
    leave_out_with_others(place, requirement.str(),
                          "what stands behind the `+` names a build of somebody's own, which the "
                          "default index does not have: the release itself is asked for");
  }
  requirement.specifier.erase(plus, end - plus);
  if (!release.empty()) cuda_release(place, release);
}

/// Whether it takes the place of what an earlier line asks of its package.
bool Conversion::wins(const Requirement& later) const {
  const bool pin = later.specifier.starts_with("==") || !later.address.empty();
  return later_wins_ || (later_pins_win_ && pin);
}

/// Whether a later `pip install torch==2.0` puts it in the place of what is there.
bool Conversion::replaces_framework(const Requirement& requirement) const {
  const auto read = parse_requirement(draft.framework);
  const auto* one = std::get_if<Requirement>(&read);
  return wins(requirement) && one != nullptr && !requirement.specifier.empty() &&
         one->normalised_name() == requirement.normalised_name() &&
         !stays_installed(*one, requirement);
}

bool Conversion::framework_package(const SourcePlace& place, Requirement requirement) {
  const Framework* framework = known_framework(requirement.normalised_name());
  if (framework == nullptr || !requirement.address.empty()) return false;
  if (marker_reach(requirement.marker) != MarkerReach::all) return false;
  requirement.marker.clear();
  requirement.name = framework->name;
  std::string cuda(framework->cuda);
  std::erase_if(requirement.extras, [&](const std::string& extra) {
    const std::string of_extra = cuda_of_extra(extra);
    if (!of_extra.empty()) cuda = of_extra;
    return !of_extra.empty();
  });
  if (!draft.framework.empty() && !replaces_framework(requirement)) {
    return same_framework_again(place, *framework, requirement, cuda);
  }
  draft.framework = requirement.str();
  const bool old = framework->name == "tensorflow" && !cuda.empty() && cuda != "cpu";
  if (old) cuda = cuda_of_tensorflow(requirement.specifier);
  if (!cuda.empty()) cuda_release(place, cuda);
  return true;
}

/// `jax==0.4` and then `jax[cuda12]`: one framework, of which each line says a part.
bool Conversion::same_framework_again(const SourcePlace& place, const Framework& framework,
                                      Requirement requirement, const std::string& cuda) {
  const auto read = parse_requirement(draft.framework);
  const auto* known = std::get_if<Requirement>(&read);
  if (known == nullptr || known->name != requirement.name) return false;
  if (framework.cuda.empty() && !cuda.empty()) cuda_release(place, cuda);
  const bool says_nothing_else = requirement.specifier == known->specifier ||
                                 requirement.specifier.empty() ||
                                 (later_wins_ && stays_installed(*known, requirement));
  if (says_nothing_else && requirement.extras.empty()) return true;
  requirement.name = framework.package == "pytorch" ? "torch" : framework.package;
  package_item(requirement);
  return true;
}

/// Whether it is of a system that no image is, or of conda's own, and told so.
bool Conversion::elsewhere(const SourcePlace& place, const Requirement& requirement) {
  const std::string name = requirement.normalised_name();
  const bool other = is_among(kOfOtherSystems, name) || name.starts_with("pyobjc");
  if ((other && requirement.marker.empty()) || is_wheel_of_another_system(requirement)) {
    leave_out_with_others(place, requirement.str(), kOtherSystem);
    return true;
  }
  // A marker about Python is left to the resolver, which knows the image's.
  const bool about_system = speaks_of_system(requirement.marker);
  const bool about_extra = says(requirement.marker, "extra");
  if ((about_system || about_extra) && marker_reach(requirement.marker) == MarkerReach::none) {
    leave_out_with_others(place, requirement.str(), about_extra ? kNoExtra : kOtherSystem);
    return true;
  }
  if (name == "pkg-resources") {
    leave_out(place, requirement.str(),
              "no package: older Debian's `pip freeze` tells it of itself");
    return true;
  }
  return false;
}

std::optional<Requirement> Conversion::requirement_of(const SourcePlace& place,
                                                      std::string_view text) {
  const std::string plain = without_local_variable(text);
  if (plain != text) {
    leave_out(place, text,
              "a variable of the machine names the build: the release itself is asked for, and "
              "`cuda` says for which CUDA");
  }
  const std::string over_https = without_git_protocol(plain);
  if (over_https != plain) note(place, text, kGitProtocol);
  const NamedRequirement named = named_requirement(folder_, over_https);
  const auto read = parse_requirement(named.text);
  if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
    leave_out(place, text, wrong->message);
    return std::nullopt;
  }
  auto requirement = std::get<Requirement>(read);
  if (named.dropped_path) {
    const CondaKind kind = conda_name(to_lower(requirement.name)).kind;
    const bool python = kind == CondaKind::python || kind == CondaKind::unknown;
    leave_out_with_others(place, requirement.name, python ? kCondaFolder : kCondaOwn);
    if (!python) return std::nullopt;
  }
  if (!named.note.empty()) note(place, text, named.note);
  return requirement;
}

void Conversion::python_package(const SourcePlace& place, std::string_view text) {
  std::optional<Requirement> requirement = requirement_of(place, text);
  if (!requirement || elsewhere(place, *requirement)) return;
  local_version(place, *requirement);
  if (framework_package(place, *requirement)) return;
  python_of_wheel(place, *requirement);
  if (requirement->normalised_name() == "pytorch") requirement->name = "torch";
  package_item(*requirement);
}

void Conversion::system_package(const SourcePlace& place, std::string_view text) {
  if (!is_debian_wish(text)) {
    leave_out(place, text, "not `name`, `name=version` or `name/suite` of a Debian package");
    return;
  }
  const std::string_view foreign = why_foreign_package(parse_debian_wish(text).name);
  if (!foreign.empty()) return leave_out_with_others(place, text, foreign);
  std::vector<std::string>& system = draft.system;
  if (std::find(system.begin(), system.end(), text) == system.end()) system.emplace_back(text);
  check_count(system.size(), "packages");
}

void Conversion::env(const SourcePlace& place, std::string_view name, std::string_view value) {
  if (!is_env_name(name) || has_control(value, "\t\n")) {
    leave_out(place, fmt::format("{}={}", name, value), "not a variable that a recipe can hold");
    return;
  }
  for (auto& [known, old] : draft.env) {
    if (known != name) continue;
    old = value;
    return;
  }
  draft.env.emplace_back(name, value);
  check_count(draft.env.size(), "variables", kMostVariables);
}

/// Where the recipe names the index of a build, nothing is lost.
void Conversion::finish_local_builds() {
  for (const LocalBuild& one : local_builds_) {
    const bool indexed =
        std::any_of(draft.index.begin(), draft.index.end(),
                    [&](const DraftIndex& index) { return index.package == one.package; });
    if (!indexed) leave_out(one.place, one.text, one.why);
  }
}

/// What is told as if the project were not installed, though a later line installs it.
void Conversion::finish_projects() {
  std::set<std::string> installed;  // folders, from the recipe's
  for (const std::string& text : draft.packages) {
    const std::size_t at = text.rfind("@ ");
    if (at == std::string::npos) continue;
    std::string_view folder = std::string_view(text).substr(at + 2);
    folder = folder.substr(0, folder.find(" ;"));
    if (folder.starts_with("./")) folder.remove_prefix(2);
    installed.emplace(folder);
  }
  for (const auto& [file, why] : of_projects_) {
    const fs::path parent = fs::path(file).parent_path();
    const auto folder = name_from_recipe(*this, parent.empty() ? "." : parent);
    if (!folder || !installed.contains(*folder)) continue;
    const auto is_false = [&named = file, shown = shown_sentence(why)](const LeftOut& one) {
      return one.place.file == named && shown_sentence(one.why) == shown;
    };
    std::erase_if(together_, is_false);
    std::erase_if(draft.left_out, is_false);
  }
}

void Conversion::finish() {
  if (draft.python.empty() && draft.base.empty() && of_wheels_.size() == 1) {
    const auto& [python, place] = *of_wheels_.begin();
    python_version(place, python);
    note(place, "Python " + python, "a wheel that is named here is for this one alone");
  }
  bring_programs();
  finish_steps();
  finish_headers();
  finish_indexes();
  finish_local_builds();
  finish_projects();
  std::move(together_.begin(), together_.end(), std::back_inserter(draft.left_out));
  together_.clear();
  finish_cuda();
  finish_compiler();
  finish_python();
}

}  // namespace mlenv
