// Where packages come from and for which CUDA they are built, as far as other files say so.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "recipes/compat/framework_cuda.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

/// PyTorch's own indexes are by the release that their builds are for.
constexpr std::array<std::string_view, 3> kTorchPackages = {"torch", "torchvision", "torchaudio"};
/// Their builds on pages of all releases are those that an index has, too.
constexpr std::array<std::string_view, 5> kOnOwnPages = {"torch", "torchvision", "torchaudio",
                                                         "jax", "jaxlib"};
constexpr std::string_view kBuildsElsewhere =
    "an index of builds: `cuda` asks for the release; where the default index has no such build, "
    "`index: {torch: URL}` names it for the packages that come from there";

/// What an index's address says of its builds: `12.1` (`…/whl/cu121`, `…/torch-2.1.0+cu121.html`),
/// `cpu`, `rocm`; empty: nothing.
std::string builds_of_url(std::string_view url) {
  const std::size_t host = url.find("://");
  if (host == std::string_view::npos) return {};
  url.remove_prefix(std::min(url.find('/', host + 3), url.size()));
  std::string found;
  for (std::string word; !url.empty(); url.remove_prefix(1)) {
    if (is_alphanumeric(url.front())) word += to_lower(url.front());
    if (is_alphanumeric(url.front()) && url.size() > 1) continue;
    if (const std::string release = release_of_tag(word); !release.empty()) found = release;
    if (word == "cpu" || word.starts_with("rocm")) found = word.substr(0, 4);
    word.clear();
  }
  return found;
}

/// PyTorch Geometric's extensions, which PyPI has as source alone.
constexpr std::array<std::string_view, 5> kOfGeometric = {
    "torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib"};

/// Words of an address: `data`, `dgl`, `ai` of `https://data.dgl.ai/`.
std::vector<std::string> words_of_url(std::string_view url) {
  std::vector<std::string> words(1);
  for (const char c : url) {
    if (is_alphanumeric(c)) {
      words.back() += to_lower(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

/// Whether a page of that address is of the package's own: the makers' name is in both.
bool is_page_of(std::string_view url, std::string_view package) {
  if (is_among(kOnOwnPages, package)) return false;
  const std::vector<std::string> words = words_of_url(url);
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (is_among(kOfGeometric, package)) return has("pyg") || has("geometric");
  constexpr std::size_t kShortest = 3;
  const std::string_view first = package.substr(0, package.find('-'));
  return first.size() >= kShortest && first != "torch" && first != "pytorch" && has(first);
}

}  // namespace

bool is_pypi(std::string_view url) {
  const std::size_t start = url.find("://");
  if (start == std::string_view::npos) return false;
  const std::string_view rest = url.substr(start + 3);
  const std::vector<std::string_view> host = split(rest.substr(0, rest.find('/')), '.');
  if (host.front() != "pypi" || host.back() != "org") return false;
  return host.size() == 2 || (host.size() == 3 && host[1] == "python");
}

std::string release_of_tag(std::string_view tag) {
  if (!tag.starts_with("cu") || tag.size() < 5 || tag.size() > 6 || !all_digits(tag.substr(2))) {
    return {};
  }
  return fmt::format("{}.{}", tag.substr(2, tag.size() - 3), tag.back());
}

void Conversion::cuda_release(const SourcePlace& place, std::string_view text) {
  const std::string release = version_prefix(text, 2);
  const std::string major = version_prefix(text, 1);
  if (text != "cpu" && (!all_digits(major) || major.size() != 2)) {
    leave_out(place, fmt::format("CUDA {}", text), "not a CUDA release that a recipe can name");
    return;
  }
  if (draft.cuda == "cpu" || draft.cuda == major) return;
  cuda_ = {place, std::string(text)};
  draft.cuda = text == "cpu" ? "cpu" : major;
  draft.cuda_note.clear();
  if (text == "cpu" || release == major) return;
  draft.cuda_note = fmt::format(
      "{} asks for CUDA {}. Any {}.x is taken here, since one driver runs them all; "
      "`cuda: \"{}\"` takes builds for just that.",
      place.file, release, major, release);
}

bool Conversion::usable_index(const SourcePlace& place, std::string_view url) {
  const std::size_t start = url.find("://");
  const std::string_view scheme = url.substr(0, std::min(start, url.size()));
  const std::string_view authority =
      start == std::string_view::npos ? ""
                                      : url.substr(start + 3, url.find('/', start + 3) - start - 3);
  if (authority.empty() || (scheme != "http" && scheme != "https") || has_control(url) ||
      url.find_first_of(" $") != std::string_view::npos) {
    leave_out(place, url, "not an http or https URL");
    return false;
  }
  if (authority.find('@') != std::string_view::npos) {
    leave_out(place, url,
              "an index with a login: keep that in `~/.netrc`, and name the index in "
              "`sources` without it");
    return false;
  }
  return true;
}

/// Whether it is an index of builds for a release, which `cuda` then asks for.
bool Conversion::says_builds(const SourcePlace& place, std::string_view url) {
  const std::string builds = builds_of_url(url);
  if (!builds.empty() && builds != "rocm") cuda_release(place, builds);
  return !builds.empty();
}

void Conversion::python_index(const SourcePlace& place, std::string_view url, bool is_default) {
  // What stands beside the default index says less than what asks for CUDA by name.
  const bool weak = !is_default && builds_of_url(url) == "cpu";
  if (weak) beside_for_cpu_ = place;
  const bool builds = !weak && says_builds(place, url);
  if (!usable_index(place, url)) return;
  if (!is_default) {
    extra_indexes_.push_back({place, std::string(url)});
    check_count(extra_indexes_.size(), "indexes");
  } else if (builds) {
    torch_indexes_.push_back({place, std::string(url)});
    check_count(torch_indexes_.size(), "indexes");
  } else {
    default_index(place, url);
  }
}

void Conversion::package_index(const SourcePlace& place, const std::string& package,
                               std::string_view url, bool is_page) {
  if (comes_in_builds(package)) return python_index(place, url, false);
  if (is_pypi(url) || !usable_index(place, url)) return;
  if (builds_of_url(url).empty() || is_page) index_of(package, url, is_page);
}

void Conversion::page_of_files(const SourcePlace& place, std::string_view url) {
  says_builds(place, url);
  if (!usable_index(place, url)) return;
  pages_.push_back({place, std::string(url)});
  check_count(pages_.size(), "pages of files");
}

void Conversion::finish_pages() {
  for (const Index& page : pages_) {
    bool some = false;
    for (const std::string& text : draft.packages) {
      const std::string package = name_of_requirement(text);
      if (!is_page_of(page.url, package)) continue;
      index_of(package, page.url, true);
      some = true;
    }
    if (some || !builds_of_url(page.url).empty()) continue;
    leave_out(page.place, "-f " + page.url,
              "a page of files: `index: {PACKAGE: {find-links: URL}}` names it for the packages "
              "that come from there");
  }
}

void Conversion::folder_of_files(const SourcePlace& place, const fs::path& file,
                                 const std::string& written) {
  const fs::path folder = file.parent_path() / written;
  const auto name = name_from_recipe(*this, folder);
  std::error_code unknown;
  if (!name || *name == "." || !fs::is_directory(folder, unknown)) {
    return leave_out(place, "find-links: " + written,
                     name && *name != "." ? "there is no such folder here"
                                          : "`find-links` names a folder in the recipe's own");
  }
  FileFolder found{place, written, "./" + *name, {}};
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    check_count(++files, "files of `find-links`");
    const auto release = parse_release_file(entry.path().filename().string());
    if (release) found.packages.insert(normalise_wheel_name(release->name));
  }
  file_folders_.push_back(std::move(found));
  check_count(file_folders_.size(), "folders of files");
}

void Conversion::finish_file_folders() {
  for (const FileFolder& folder : file_folders_) {
    bool some = false;
    for (const std::string& text : draft.packages) {
      const std::string package = name_of_requirement(text);
      if (!folder.packages.contains(package)) continue;
      index_of(package, folder.name, true);
      some = true;
    }
    if (some) continue;
    leave_out(folder.place, "find-links: " + folder.written,
              "no file in it is of a package that is asked for by its name: `index: {PACKAGE: "
              "{find-links: FOLDER}}` names it for one");
  }
}

void Conversion::default_index(const SourcePlace& place, std::string_view url) {
  if (draft.indexes.empty()) {
    draft.indexes.emplace_back(url);
  } else if (draft.indexes.front() != url) {
    leave_out(place, url, "a second default index");
  }
}

void Conversion::index_of(const std::string& package, std::string_view url, bool find_links) {
  for (DraftIndex& one : draft.index) {
    if (one.package == package) {
      one = {package, std::string(url), find_links};
      return;
    }
  }
  draft.index.push_back({package, std::string(url), find_links});
  check_count(draft.index.size(), "packages with indexes of their own");
}

bool Conversion::has_package(std::string_view name) const {
  const auto is = [&](std::string_view text) { return name_of_requirement(text) == name; };
  return (name == "torch" && draft.framework.starts_with("pytorch")) || is(draft.framework) ||
         std::any_of(draft.packages.begin(), draft.packages.end(), is);
}

void Conversion::command_indexes(const SourcePlace& place, CommandIndexes command) {
  for (const std::string& link : command.links) {
    says_builds(place, link);
    if (!usable_index(place, link)) continue;
    bool some = false;
    for (const std::string& package : command.packages) {
      if (is_among(kOnOwnPages, package)) continue;
      index_of(package, link, true);
      some = true;
    }
    if (some) continue;
    leave_out(place, "-f " + link,
              "a page of files: `index: {PACKAGE: {find-links: URL}}` names it for the packages "
              "that come from there");
  }
  if (command.packages.empty() && !command.files) return;
  if (!command.index.empty() && !usable_index(place, command.index)) command.index.clear();
  if (!command.index.empty() && says_builds(place, command.index)) {
    for (const std::string& package : command.packages) index_of(package, command.index, false);
    if (command.files) torch_indexes_.push_back({place, command.index});
    return;
  }
  commands_.push_back({place, std::move(command)});
  check_count(commands_.size(), "commands");
}

void Conversion::finish_extra_indexes() {
  std::set<std::string> seen;
  for (const Index& index : extra_indexes_) {
    if (!seen.insert(index.url).second || is_pypi(index.url)) continue;
    if (std::find(draft.indexes.begin(), draft.indexes.end(), index.url) != draft.indexes.end()) {
      continue;
    }
    if (!draft.indexes.empty()) {
      draft.indexes.push_back(index.url);
    } else {
      leave_out(index.place, index.url,
                builds_of_url(index.url).empty()
                    ? "a recipe that names another index names the default one too: `sources`, "
                      "`pypi`, first the default one, then this"
                    : kBuildsElsewhere);
    }
  }
}

void Conversion::finish_indexes() {
  finish_pages();
  finish_file_folders();
  for (const Index& index : torch_indexes_) {
    for (const std::string_view package : kTorchPackages) {
      if (has_package(package)) index_of(std::string(package), index.url, false);
    }
  }
  // One that all commands have, or that a list of requirements comes from, is everybody's; else it
  // is that of the packages which its command names.
  const bool all = std::all_of(commands_.begin(), commands_.end(), [&](const PlacedCommand& one) {
    return one.command.index == commands_.front().command.index;
  });
  for (const auto& [place, command] : commands_) {
    if (command.index.empty()) continue;
    if (all || command.files) {
      default_index(place, command.index);
    } else {
      for (const std::string& package : command.packages) index_of(package, command.index, false);
    }
  }
  finish_extra_indexes();
  // PyPI alone is what the machine has anyway, or mirrors.
  if (draft.indexes.size() == 1 && is_pypi(draft.indexes.front())) draft.indexes.clear();
}

/// What no build of the framework is for would have no lock: it was an image's, which wheels do not
/// need.
void Conversion::finish_cuda() {
  if (draft.cuda.empty() && beside_for_cpu_) cuda_release(*beside_for_cpu_, "cpu");
  if (draft.cuda.empty()) return;
  const bool used =
      !draft.framework.empty() || !draft.packages.empty() || !draft.requirements.empty();
  const std::string of = "CUDA " + (cuda_.url.empty() ? draft.cuda : cuda_.url);
  const auto forget = [&](std::string_view why) {
    leave_out(cuda_.url.empty() ? SourcePlace{draft.source, 0} : cuda_.place, of, why);
    draft.cuda.clear();
    draft.cuda_note.clear();
  };
  if (!used) return forget("`cuda` needs a `framework` or `packages` that use it");
  const auto read = parse_requirement(draft.framework);
  const auto* framework = std::get_if<Requirement>(&read);
  if (draft.cuda == "cpu" || framework == nullptr) return;
  if (!has_builds_for_cuda(framework->name, framework->specifier, draft.cuda)) {
    forget(
        fmt::format("no build of `{}` is for it: the wheels bring the CUDA that they were built "
                    "for",
                    draft.framework));
  }
}

/// The one that a pinned framework has wheels for, where nothing else says one: bookworm's, else
/// the first of the others.
void Conversion::choose_python() {
  if (!draft.python.empty() || !draft.base.empty()) return;
  constexpr std::array<std::string_view, 6> kInOrder = {"3.11", "3.12", "3.10",
                                                        "3.9",  "3.8",  "3.13"};
  const std::string python = framework_python(kInOrder);
  if (python == kInOrder.front()) return;  // the machine's may do as well
  if (!python.empty()) {
    draft.python = python;
    return note({draft.source, 0}, draft.framework.empty() ? "torchvision" : draft.framework,
                fmt::format("it has wheels for Python {}, and none for newer ones", python));
  }
  note_old_framework();
}

/// A Python that was installed beside the distribution's own: the release that has it.
void Conversion::finish_python() {
  python_of_projects();
  choose_nearest_python();
  fit_python_to_framework();
  choose_python();
  const std::string_view own = python_of_base(draft.base);
  if (draft.python.empty() || own.empty() || own == draft.python) return;
  const std::string other = base_with_python(draft.python);
  if (other.empty()) return;
  draft.base_note += fmt::format("{}In the place of `{}`, whose own Python is {}.",
                                 draft.base_note.empty() ? "" : " ", draft.base, own);
  draft.base = other;
}

}  // namespace mlenv
