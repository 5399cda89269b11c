// requirements.txt and what it includes.
#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/log.hpp"
#include "recipes/logins.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/requirement_text.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostIncludedFiles = 200;
constexpr std::string_view kFileUrl = "file://";

/// `dev/../base.txt` written in `requirements/all.txt` → `requirements/base.txt`, if that is in
/// the recipe's folder.
std::optional<std::string> beside(const std::string& file, const std::string& path) {
  if (path.starts_with('/') || path.starts_with('~') || has_control(path)) return std::nullopt;
  std::string joined = (fs::path(file).parent_path() / path).lexically_normal().string();
  if (!is_clean_relative_path(joined)) return std::nullopt;
  return joined;
}

/// `my%20wheels` → `my wheels`; what is no escape stays.
std::string url_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 2;
  }
  return out;
}

class LinesReader {
 public:
  LinesReader(const RequirementFolder& folder, RequirementLists& lists, IndexPlaces* indexes)
      : folder_(folder), lists_(lists), indexes_(indexes) {}

  void read(const std::string& path, const std::shared_ptr<const RequirementsText>& file,
            bool constraints) {
    Mistakes mistakes(file->shown_path, file->text);
    const std::vector<RequirementLine> lines = parse_requirement_lines(file->text, mistakes);
    std::vector<Included> included;
    open_.push_back(path);
    for (const RequirementLine& line : lines) {
      const ListedText place{line.text, file, line.line, line.column};
      switch (line.what) {
        case LineKind::requirement:
          add(line, place, constraints, mistakes);
          break;
        case LineKind::nameless:
          add_named(line, place, constraints, mistakes);
          break;
        case LineKind::all_hashed:
          lists_.all_hashed = place;
          break;
        case LineKind::index:
          add_index(path, line, place, mistakes);
          break;
        case LineKind::steering:
          steer(path, line, mistakes);
          break;
        case LineKind::include:
        case LineKind::constraints:
          if (auto one = include(path, line, constraints, mistakes)) {
            included.push_back(*std::move(one));
          }
          break;
      }
    }
    if (!mistakes.empty()) throw mistakes.error("requirements-invalid");
    for (const Included& one : included) read(one.path, one.file, one.constraints);
    open_.pop_back();
  }

 private:
  struct Included {
    std::string path;
    std::shared_ptr<const RequirementsText> file;
    bool constraints;
  };

  void add(const RequirementLine& line, const ListedText& place, bool constraints,
           Mistakes& mistakes) {
    const auto read = std::get<Requirement>(parse_requirement(line.text));
    if (constraints && !read.extras.empty()) {
      mistakes.add(line.line, line.column, "a constraint is on a package, not on its extras");
      return;
    }
    (constraints ? lists_.constraints : lists_.requirements).push_back(place);
    std::set<std::string> hashes = line.sha256;
    if (!read.address.empty()) {
      const auto address = parse_package_address(read.address);
      const std::string& promised = std::get<PackageAddress>(address).sha256;
      if (!promised.empty()) hashes.insert(promised);
    }
    const std::string version = hashes.empty() ? "" : version_of(read);
    if (!version.empty()) lists_.add_hashes({read.normalised_name(), version}, hashes, place);
  }

  void steer(const std::string& from, const RequirementLine& line, Mistakes& mistakes) {
    Steering& steering = lists_.steering;
    if (line.option == "--pre") {
      if (steering.prerelease.empty()) steering.prerelease = "allow";
    } else if (line.option == "--prefer-binary") {
      steering.prefer_binary.emplace(kAllPackages);
    } else if (line.option == "--no-binary") {
      take_names(line, steering.no_binary, steering.only_binary, mistakes);
    } else if (line.option == "--only-binary") {
      take_names(line, steering.only_binary, steering.no_binary, mistakes);
    } else if (line.option == "--build-constraint") {
      build_constraints(from, line, mistakes);
    } else {
      config_setting(line, mistakes);
    }
  }

  /// As pip has it: the last word on a package counts.
  static void take_names(const RequirementLine& line, std::set<std::string>& into,
                         std::set<std::string>& rival, Mistakes& mistakes) {
    for (const std::string_view part : split(line.text, ',')) {
      const std::string text(trim(part));
      const std::string name = text == kAllPackages ? text : normalise_wheel_name(text);
      if (text == ":none:") {
        into.clear();
      } else if (text == kAllPackages || is_wheel_name(name)) {
        if (text == kAllPackages) rival.clear();
        rival.erase(name);
        into.insert(name);
      } else {
        mistakes.add(line.line, line.column,
                     fmt::format("`{}` is not a package's name, nor `:all:`", text));
      }
    }
  }

  void build_constraints(const std::string& from, const RequirementLine& line, Mistakes& mistakes) {
    const std::optional<Included> file = include(from, line, true, mistakes);
    if (!file) return;
    RequirementLists alone;
    LinesReader(folder_, alone, nullptr).read(file->path, file->file, true);
    for (const ListedText& one : alone.constraints) {
      lists_.steering.build.constraints.push_back(one.text);
    }
  }

  void config_setting(const RequirementLine& line, Mistakes& mistakes) {
    const std::size_t end = line.text.find('=');
    if (end == std::string::npos || end == 0) {
      mistakes.add(line.line, line.column, "a setting is written `KEY=VALUE`");
      return;
    }
    auto& settings = lists_.steering.build.config_settings;
    auto& values = line.package.empty() ? settings.all : settings.by_name[line.package];
    values[line.text.substr(0, end)].push_back(line.text.substr(end + 1));
  }

  void add_index(const std::string& from, const RequirementLine& line, const ListedText& place,
                 Mistakes& mistakes) {
    const auto wrong = [&](std::string_view what) {
      mistakes.add(line.line, line.column, fmt::format("`{}` {}", line.text, what));
    };
    std::string where = line.text;
    const std::string_view text = line.text;
    const std::string_view kind = text.substr(0, std::min(text.find("://"), text.size()));
    if (const fs::path path = local_path(from, text); !path.empty()) {
      where = std::string(kFileUrl) + url_path_encode(path.string());
    } else if (!text.empty()) {
      if (kind != "https" && kind != "http") {
        return wrong("is no URL that starts with `https://`, `http://` or `file://`");
      }
      if (!find_logins(text).empty()) {
        mistakes.add(line.line, line.column,
                     "a file that people share must not hold a login; keep it in `~/.netrc`");
        return;
      }
      if (text.find_first_of(" \t") != std::string_view::npos) return wrong("has a blank in it");
    }
    const std::string all = where.empty() ? line.option : line.option + ' ' + where;
    if (indexes_ != nullptr) {
      indexes_->emplace(all, place);
    } else if (!is_second_default(all, line, mistakes)) {
      lists_.add_index(all);
    }
  }

  /// Of what a file names as its own: from its folder. Whether it is there matters where a package
  /// is looked for. Empty: a server.
  fs::path local_path(const std::string& from, std::string_view text) const {
    if (text.starts_with(kFileUrl)) return index_path(text);
    if (text.empty() || text.find("://") != std::string_view::npos) return {};
    constexpr std::string_view kFile = "file:";
    if (text.starts_with(kFile)) text.remove_prefix(kFile.size());
    const fs::path path = folder_.path() / fs::path(from).parent_path() / text;
    return fs::absolute(path).lexically_normal();
  }

  /// Packages have one default index, whichever files name it.
  bool is_second_default(const std::string& all, const RequirementLine& line, Mistakes& mistakes) {
    constexpr std::string_view kDefault = "--index-url ";
    if (!all.starts_with(kDefault)) return false;
    const auto known =
        std::find_if(lists_.indexes.begin(), lists_.indexes.end(),
                     [&](const std::string& one) { return one.starts_with(kDefault); });
    if (known == lists_.indexes.end() || *known == all) return false;
    const auto first = find_index(folder_.recipe(), *known);
    mistakes.add(
        line.line, line.column,
        fmt::format("there is one default index, and {} names another: write "
                    "`--extra-index-url` where both are meant, else leave one out",
                    first ? fmt::format("{}:{}", first->file->shown_path.string(), first->line)
                          : "another file"));
    return true;
  }

  /// Of a requirement that may have hashes.
  static std::string version_of(const Requirement& one) {
    if (one.address.empty()) return one.specifier.substr(one.specifier.find_first_not_of('='));
    const auto address = parse_package_address(one.address);
    const auto file = parse_release_file(std::get<PackageAddress>(address).file());
    return file ? file->version : std::string{};
  }

  /// A folder or archive: the name is what it says itself.
  void add_named(const RequirementLine& line, const ListedText& place, bool constraints,
                 Mistakes& mistakes) {
    const auto read = parse_package_address(line.text);
    const auto& address = std::get<PackageAddress>(read);
    std::optional<std::string> name;
    if (const auto file = parse_release_file(address.file())) {
      name = file->name;
    } else {
      name = project_name(folder_.path() / address.place / address.subdirectory);
    }
    if (!name) {
      mistakes.add(line.line, line.column,
                   fmt::format("`{0}` does not tell whose it is: write `NAME @ {0}`", line.text));
      return;
    }
    std::string text = *name + line.extras + " @ " + line.text;
    if (!line.marker.empty()) text += " ; " + line.marker;
    const auto made = parse_requirement(text);
    if (const auto* wrong = std::get_if<RequirementMistake>(&made)) {
      mistakes.add(line.line, line.column, wrong->message);
      return;
    }
    RequirementLine named = line;
    named.text = std::get<Requirement>(made).str();
    ListedText there = place;
    there.text = named.text;
    add(named, there, constraints, mistakes);
  }

  /// nullopt after a mistake, and for a file that has been read already.
  std::optional<Included> include(const std::string& from, const RequirementLine& line,
                                  bool constraints, Mistakes& mistakes) {
    const auto wrong = [&](const std::string& what) {
      mistakes.add(line.line, line.column, fmt::format("`{}` {}", line.text, what));
      return std::nullopt;
    };
    if (line.text.find("://") != std::string::npos) {
      return wrong("is on the network; a lock is made from files of the recipe's folder");
    }
    const std::optional<std::string> path = beside(from, line.text);
    if (!path) return wrong("leads out of the recipe's folder");
    if (std::find(open_.begin(), open_.end(), *path) != open_.end()) {
      return wrong("is read already: the files include each other in a circle");
    }
    std::string mistake;
    auto file = folder_.open(*path, mistake);
    if (file == nullptr) return wrong(mistake);
    if (++files_ > kMostIncludedFiles) return wrong("is one file too many");
    return Included{*path, std::move(file), constraints || line.what == LineKind::constraints};
  }

  const RequirementFolder& folder_;
  RequirementLists& lists_;
  IndexPlaces* indexes_;
  std::vector<std::string> open_;  ///< from the recipe's own down to the one being read
  std::size_t files_ = 0;
};

}  // namespace

void read_requirement_lines(const RequirementFolder& folder, const RequirementSource& source,
                            RequirementLists& lists, IndexPlaces* indexes) {
  LinesReader(folder, lists, indexes).read(source.file.text, folder.open(source.file), false);
}

void read_constraint_lines(const RequirementFolder& folder, const Placed& file,
                           RequirementLists& lists) {
  LinesReader(folder, lists, nullptr).read(file.text, folder.open(file), true);
}

fs::path index_path(std::string_view line) {
  const std::size_t url = line.find(kFileUrl);
  if (url == std::string_view::npos) return {};
  const std::size_t path = std::min(line.find('/', url + kFileUrl.size()), line.size());
  return fs::path(url_decoded(line.substr(path))).lexically_normal();
}

std::optional<ListedText> find_index(const Recipe& recipe, const std::string& line) {
  IndexPlaces places;
  try {
    const RequirementFolder folder(recipe);
    for (const RequirementSource& source : recipe.requirements) {
      std::string why;
      const std::string& path = source.file.text;
      if (requirement_format(path.substr(path.rfind('/') + 1), why) != RequirementFormat::lines) {
        continue;
      }
      RequirementLists alone;
      read_requirement_lines(folder, source, alone, &places);
    }
  } catch (const Error& error) {
    log::debug("read again for `{}`: {}", line,
               error.what());  // another file's mistake, told elsewhere
  }
  const auto found = places.find(line);
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace mlenv
