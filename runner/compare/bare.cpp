#include "runner/compare/bare.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "runner/image_program.hpp"

namespace mlenv::compare {
namespace {

/// By the architecture's ABI; the image has one of them.
constexpr std::array kLoaders = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};
constexpr std::array kLibraryFolders = {"usr/lib/x86_64-linux-gnu",
                                        "usr/lib/aarch64-linux-gnu",
                                        "lib/x86_64-linux-gnu",
                                        "lib/aarch64-linux-gnu",
                                        "usr/local/lib",
                                        "usr/lib",
                                        "lib"};
constexpr std::string_view kElf =
    "\x7f"
    "ELF";

/// The host's own files are where absolute links would lead.
void keep_links_below(const fs::path& root) {
  std::vector<std::pair<fs::path, fs::path>> absolute;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (!S_ISLNK(entry.status.st_mode)) return true;
    fs::path link = root / entry.path;
    fs::path target = fs::read_symlink(link);
    if (target.is_absolute()) absolute.emplace_back(std::move(link), std::move(target));
    return true;
  };
  walk.unreadable = [](std::string_view, int) {};
  walk_tree(root, walk);
  for (const auto& [link, target] : absolute) {
    fs::remove(link);
    fs::create_symlink(root / target.relative_path(), link);
  }
}

bool holds_libraries(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(folder, ignored))) return false;
  const std::vector<fs::path> inner = list_folder(folder);
  return std::any_of(inner.begin(), inner.end(), [](const fs::path& one) {
    const std::string name = one.filename().string();
    return name.starts_with("lib") && name.find(".so.") != std::string::npos;
  });
}

std::string beginning_of(const fs::path& file) {
  constexpr std::size_t kMost = 256;
  const Fd fd = open_file(file);
  std::string text(kMost, '\0');
  FdSource source(fd.get());
  text.resize(source.read({reinterpret_cast<std::byte*>(text.data()), text.size()}));
  return text;
}

}  // namespace

std::vector<std::string> words_of_script(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return {};
  const std::string_view line = trim(beginning.substr(2, beginning.find('\n') - 2));
  const std::size_t blank = line.find_first_of(" \t");
  std::vector<std::string> words{std::string(line.substr(0, blank))};
  // The kernel takes all that follows as one word.
  if (blank != std::string_view::npos) words.emplace_back(trim(line.substr(blank)));
  return words;
}

BareImage::BareImage(const std::vector<fs::path>& trees, ImageConfig config, fs::path root,
                     Filled how)
    : files_(trees), config_(std::move(config)), root_(std::move(root)) {
  files_.link_into(root_, how);
  keep_links_below(root_);
  find_libraries();
  const std::optional<std::string> python =
      program_in_image(config_, StackedNames(files_), "python3");
  if (!python) return;
  python_ = files_.resolve(*python);
  // Where a virtual environment of the image keeps its packages.
  const fs::path library = fs::path(*python).parent_path().parent_path() / "lib";
  for (const std::string& name : files_.list(library.string())) {
    const std::string packages = (library / name / "site-packages").string();
    const std::optional<std::string> real = files_.resolve(packages);
    if (!real || !name.starts_with("python")) continue;
    std::string path = (root_ / *real).string();
    const bool known =
        std::find(site_packages_.begin(), site_packages_.end(), path) != site_packages_.end();
    if (!known) site_packages_.push_back(std::move(path));
  }
}

void BareImage::find_libraries() {
  const auto add = [&](const std::string& folder) {
    libraries_ += (libraries_.empty() ? "" : ":") + (root_ / folder).string();
  };
  std::vector<std::string> below;  // that libraries name by paths which are the host's here
  for (const char* const folder : kLibraryFolders) {
    const std::optional<std::string> real = files_.resolve(folder);
    if (!real) continue;
    add(folder);
    if (*real != folder) continue;  // another name of one that is there already
    for (const fs::path& inner : list_folder(root_ / folder)) {
      std::string relative = inner.lexically_relative(root_).string();
      const bool is_known = std::find(kLibraryFolders.begin(), kLibraryFolders.end(), relative) !=
                            kLibraryFolders.end();
      if (!is_known && holds_libraries(inner)) below.push_back(std::move(relative));
    }
  }
  for (const std::string& folder : below) add(folder);
}

std::vector<std::string> BareImage::environment() const {
  std::vector<std::string> env;
  for (const std::string& one : config_.env) {
    if (!one.starts_with("PYTHONHOME=") && !one.starts_with("PYTHONPATH=")) env.push_back(one);
  }
  env.emplace_back("HOME=/tmp");
  env.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  if (python_) {
    const fs::path prefix = fs::path(*python_).parent_path().parent_path();
    env.push_back("PYTHONHOME=" + (root_ / prefix).string());
    std::string packages;
    for (const std::string& one : site_packages_) packages += (packages.empty() ? "" : ":") + one;
    if (!packages.empty()) env.push_back("PYTHONPATH=" + packages);
  }
  return env;
}

std::vector<std::string> BareImage::words_for(const std::string& program, const std::string& shown,
                                              int depth) const {
  constexpr int kMostScripts = 3;
  const auto cannot = [&](std::string why) {
    return failure("cannot-start", "cannot start `{}` on the bare host", shown)
        .because(std::move(why));
  };
  const std::optional<std::string> path =
      program.find('/') == std::string::npos
          ? program_in_image(config_, StackedNames(files_), program)
          : program;
  const std::optional<std::string> real = path ? files_.resolve(*path) : std::nullopt;
  if (!real || !files_.is_program(*real)) throw cannot("there is no such program in the image");
  const fs::path file = root_ / *real;
  const std::string beginning = beginning_of(file);
  const std::vector<std::string> script = words_of_script(beginning);
  if (!script.empty()) {
    const bool by_env = script.front() == "/usr/bin/env" && script.size() > 1;
    if (depth >= kMostScripts) throw cannot("scripts lead to each other");
    std::vector<std::string> words =
        words_for(by_env ? script[1] : script.front(), shown, depth + 1);
    if (!by_env && script.size() > 1) words.push_back(script[1]);
    words.push_back(file.string());
    return words;
  }
  if (!beginning.starts_with(kElf)) throw cannot("it is neither a program nor a script");
  for (const char* const loader : kLoaders) {
    const std::optional<std::string> found = files_.resolve(loader);
    if (!found) continue;
    return {(root_ / *found).string(),
            "--inhibit-cache",
            "--library-path",
            libraries_,
            "--argv0",
            program,
            file.string()};
  }
  throw cannot("the image has no loader that is known here");
}

Command BareImage::command(const std::vector<std::string>& argv, const fs::path& folder) const {
  Command command{Purpose{"compare-bare"}};
  command.argv = words_for(argv.at(0), argv.at(0), 0);
  command.argv.insert(command.argv.end(), argv.begin() + 1, argv.end());
  command.env = environment();
  command.folder = folder;
  return command;
}

}  // namespace mlenv::compare
