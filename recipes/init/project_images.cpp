#include "recipes/init/project_images.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "recipes/init/compose_service.hpp"
#include "recipes/init/shell_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostFiles = 200;
constexpr std::size_t kMostSeen = 5'000;

std::string_view without_hub(std::string_view image) {
  for (const std::string_view begin : {"docker.io/", "index.docker.io/", "library/"}) {
    if (image.starts_with(begin)) image.remove_prefix(begin.size());
  }
  return image;
}

struct ImageName {
  std::string_view repository;
  std::string_view tag;  ///< empty: `latest`
};
ImageName name_of(std::string_view image) {
  image = without_hub(image.substr(0, image.find('@')));
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  ImageName name{image.substr(0, colon), {}};
  if (colon != std::string_view::npos) name.tag = image.substr(colon + 1);
  if (name.tag == "latest") name.tag = {};
  return name;
}

bool has_registry(std::string_view image) {
  const std::string_view first = image.substr(0, image.find('/'));
  return first.size() < image.size() &&
         (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
}

bool is_joint(char c) { return c == '.' || c == '-' || c == '_'; }

/// `base` of `Dockerfile.base`, `base.Dockerfile` and `base/Dockerfile`; empty: it has none.
std::string word_of_file(const fs::path& path, const fs::path& top) {
  const std::string name = to_lower(path.filename().string());
  for (const std::string_view kind : {"dockerfile", "containerfile"}) {
    const std::size_t size = kind.size();
    if (name == kind && path.parent_path() != top) {
      return to_lower(path.parent_path().filename().string());
    }
    if (name.size() <= size + 1) continue;
    if (name.starts_with(kind) && is_joint(name[size])) return name.substr(size + 1);
    if (name.ends_with(kind) && is_joint(name[name.size() - size - 1])) {
      return name.substr(0, name.size() - size - 1);
    }
  }
  return {};
}

bool is_dockerfile(std::string_view name) {
  return says(name, "dockerfile") || says(name, "containerfile");
}

bool is_compose_file(std::string_view name) {
  return (name.ends_with(".yml") || name.ends_with(".yaml")) && says(name, "compose");
}

/// What people write the commands of their builds in.
bool holds_commands(std::string_view name) {
  return name.starts_with("makefile") || name.starts_with("readme") || name == "justfile" ||
         name.ends_with(".sh");
}

/// Whether an image is called after that file: `lab-base`, `lab:base`. Of names that may be
/// anybody's
/// (`redis`, `somebody/web-api`, `node:alpine`) only those that say what the image is for.
bool is_called_after(const ImageName& image, const std::string& word) {
  if (word.size() < 2) return false;
  constexpr std::array<std::string_view, 4> kPurposes = {"base", "common", "core", "builder"};
  const bool purpose = std::any_of(kPurposes.begin(), kPurposes.end(),
                                   [&](std::string_view one) { return says(word, one); });
  const std::size_t slash = image.repository.rfind('/');
  const std::string last = to_lower(image.repository.substr(slash + 1));
  if (last == word) return purpose || slash != std::string_view::npos;
  const bool ends = last.size() > word.size() + 1 && last.ends_with(word) &&
                    is_joint(last[last.size() - word.size() - 1]);
  if (ends) return purpose || slash == std::string_view::npos;
  return purpose && to_lower(image.tag) == word;
}

class ProjectImages {
 public:
  ProjectImages(std::string_view image, const fs::path& dockerfile, std::vector<fs::path> folders,
                Conversion& to)
      : image_(image), name_(name_of(image)), dockerfile_(dockerfile), to_(to) {
    folders.push_back(to.folder());
    std::set<fs::path> known;
    for (const fs::path& folder : folders) {
      const fs::path whole = canonical(folder.empty() ? "." : folder);
      if (known.insert(whole).second) folders_.push_back(folder);
    }
    for (const fs::path& folder : folders_) list(folder);
  }

  std::optional<ProjectImage> find() {
    for (const auto& [path, top] : files_) {
      if (auto found = of_compose(path)) return found;
    }
    for (const auto& [path, top] : files_) {
      if (auto found = of_commands(path, top)) return found;
    }
    return has_registry(image_) ? std::nullopt : of_name();
  }

 private:
  static fs::path canonical(const fs::path& path) {
    std::error_code unknown;
    return fs::weakly_canonical(path, unknown);
  }

  /// A file of this project, which the recipe may be made of.
  bool is_ours(const fs::path& path) const {
    std::error_code unknown;
    return fs::is_regular_file(path, unknown) && to_.holds(canonical(path));
  }

  /// Files of a folder, and of those below it.
  void list(const fs::path& top) {
    std::vector<fs::path> below;
    list_one(top, top, &below);
    std::sort(below.begin(), below.end());
    for (const fs::path& folder : below) list_one(folder, top, nullptr);
  }
  void list_one(const fs::path& folder, const fs::path& top, std::vector<fs::path>* below) {
    std::error_code unknown;
    std::vector<fs::path> here;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, unknown)) {
      if (here.size() >= kMostFiles || ++entries_ > kMostSeen) break;
      const fs::path path = folder / entry.path().filename();
      const std::string name = to_lower(path.filename().string());
      if (entry.is_symlink(unknown)) continue;
      if (entry.is_regular_file(unknown)) {
        const bool telling = is_dockerfile(name) || is_compose_file(name) || holds_commands(name);
        if (telling) here.push_back(path);
      } else if (below != nullptr && below->size() < kMostFiles && entry.is_directory(unknown)) {
        below->push_back(path);
      }
    }
    std::sort(here.begin(), here.end());
    for (fs::path& path : here) {
      if (seen_.insert(path.lexically_normal()).second) files_.emplace_back(std::move(path), top);
    }
  }

  std::string text_of(const fs::path& path) const {
    if (!is_ours(path)) return {};
    try {
      std::string text = decoded_text(read_small_file(path, size_limit::kPyproject));
      return utf8_fault(text) == std::string::npos ? text : "";
    } catch (const Error&) {  // it is not what is converted
      return {};
    }
  }

  std::optional<ProjectImage> usable(ProjectImage found) const {
    const bool itself = canonical(found.dockerfile) == canonical(dockerfile_);
    return !itself && is_ours(found.dockerfile) ? std::optional(std::move(found)) : std::nullopt;
  }

  std::optional<ProjectImage> of_compose(const fs::path& path) {
    if (!is_compose_file(to_lower(path.filename().string()))) return std::nullopt;
    const std::string text = text_of(path);
    if (!is_compose_text(text)) return std::nullopt;
    try {
      auto found = compose_build_of({path, path.lexically_normal().string(), text}, image_, to_);
      return found ? usable(*std::move(found)) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  /// `docker build -t lab-base -f Dockerfile.base .`
  std::optional<ProjectImage> of_commands(const fs::path& path, const fs::path& top) {
    const bool commands = holds_commands(to_lower(path.filename().string()));
    const std::string text = commands ? text_of(path) : "";
    if (!says(text, name_.repository)) return std::nullopt;
    std::string line;
    for (const std::string_view part : split(text, '\n')) {
      std::string_view one = trim(part);
      const bool goes_on = one.ends_with('\\');
      if (goes_on) one.remove_suffix(1);
      line += (line.empty() ? "" : " ") + std::string(one);
      if (goes_on) continue;
      if (auto found = of_command(line, {path.parent_path(), top})) return found;
      line.clear();
    }
    return std::nullopt;
  }

  std::optional<ProjectImage> of_command(const std::string& line,
                                         const std::array<fs::path, 2>& starts) {
    if (!says(line, "build") || !says(line, name_.repository)) return std::nullopt;
    for (const ShellCommand& one : shell_commands(line, {})) {
      const auto engine = std::find_if(one.words.begin(), one.words.end(), [](const auto& word) {
        return word == "docker" || word == "podman" || word == "nerdctl" || word == "@docker";
      });
      const auto verb = std::find(engine, one.words.end(), "build");
      if (verb == one.words.end()) continue;
      const auto made = of_words({verb + 1, one.words.end()});
      if (!made) continue;
      for (const fs::path& start : starts) {
        ProjectImage found = *made;
        found.build.context = (start / found.build.context).lexically_normal();
        found.dockerfile = found.dockerfile.empty() ? found.build.context / "Dockerfile"
                                                    : start / found.dockerfile;
        if (auto ours = usable(std::move(found))) return ours;
      }
    }
    return std::nullopt;
  }

  static void take_option(std::string_view name, const std::string& value, ProjectImage& made) {
    if (name == "-f" || name == "--file") made.dockerfile = value;
    if (name == "--target") made.build.target = value;
    const std::size_t is = value.find('=');
    if (name == "--build-arg" && is != std::string::npos && !says(value, "$")) {
      made.build.args[value.substr(0, is)] = value.substr(is + 1);
    }
  }

  /// Paths are those of the folder that the command is started in.
  std::optional<ProjectImage> of_words(const std::vector<std::string>& words) const {
    constexpr std::array<std::string_view, 4> kAlone = {"--pull", "--push", "--load", "--no-cache"};
    ProjectImage made;
    bool ours = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (!word.starts_with('-') || word == "-") {
        made.build.context = word;
        continue;
      }
      const std::size_t equal = word.starts_with("--") ? word.find('=') : std::string::npos;
      const std::string name = word.substr(0, equal);
      if (is_among(kAlone, name) || name == "-q" || name == "--quiet" || name == "--rm") continue;
      std::string value = equal == std::string::npos ? "" : word.substr(equal + 1);
      if (equal == std::string::npos && i + 1 < words.size()) value = words[++i];
      if (name == "-t" || name == "--tag") ours = ours || is_same_image(value, image_);
      take_option(name, value, made);
    }
    return ours ? std::optional(std::move(made)) : std::nullopt;
  }

  /// The longest word is the most that a name can say.
  std::optional<ProjectImage> of_name() const {
    std::optional<ProjectImage> best;
    std::size_t length = 0;
    for (const auto& [path, top] : files_) {
      const bool docker = is_dockerfile(to_lower(path.filename().string()));
      const std::string word = docker ? word_of_file(path, top) : "";
      if (word.size() <= length || !is_called_after(name_, word)) continue;
      if (auto found = usable({path, {}})) {
        best = std::move(found);
        length = word.size();
      }
    }
    return best;
  }

  std::string_view image_;
  ImageName name_;
  const fs::path& dockerfile_;
  Conversion& to_;
  std::vector<fs::path> folders_;
  std::vector<std::pair<fs::path, fs::path>> files_;  ///< and the folder that it was found below
  std::set<fs::path> seen_;
  std::size_t entries_ = 0;
};

}  // namespace

bool is_same_image(std::string_view a, std::string_view b) {
  const ImageName one = name_of(a);
  const ImageName other = name_of(b);
  return !one.repository.empty() && one.repository == other.repository && one.tag == other.tag;
}

std::optional<ProjectImage> project_image(std::string_view image, const fs::path& dockerfile,
                                          std::vector<fs::path> folders, Conversion& to) {
  if (contents_of_image(image) != ImageContents::unknown || image == "scratch") return std::nullopt;
  return ProjectImages(image, dockerfile, std::move(folders), to).find();
}

}  // namespace mlenv
