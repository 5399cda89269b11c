// requirements.txt and what it includes.
#include <algorithm>

#include "base/error.hpp"
#include "base/http.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/requirement_text.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using What = RequirementLine::What;

constexpr std::size_t kMostFiles = 200;

/// `dev/../base.txt` written in `requirements/all.txt` → `requirements/base.txt`, if that is in
/// the recipe's folder.
std::optional<std::string> beside(const std::string& file, const std::string& path) {
  if (path.starts_with('/') || path.starts_with('~') || has_control(path)) return std::nullopt;
  std::string joined = (fs::path(file).parent_path() / path).lexically_normal().string();
  if (!is_clean_relative_path(joined)) return std::nullopt;
  return joined;
}

class LinesReader {
 public:
  LinesReader(const RequirementFolder& folder, RequirementLists& lists,
              std::vector<std::string>& indexes)
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
        case What::requirement:
          add(line, place, constraints, mistakes);
          break;
        case What::nameless:
          add_named(line, place, constraints, mistakes);
          break;
        case What::all_hashed:
          lists_.all_hashed = place;
          break;
        case What::index:
          add_index(path, line, mistakes);
          break;
        case What::include:
        case What::constraints:
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

  /// A path is one from the folder of the file that it stands in.
  void add_index(const std::string& from, const RequirementLine& line, Mistakes& mistakes) {
    const auto wrong = [&](std::string_view what) {
      mistakes.add(line.line, line.column, fmt::format("`{}` {}", line.text, what));
    };
    std::string where = line.text;
    const std::size_t scheme = where.find("://");
    if (scheme == std::string::npos && !where.empty()) {
      const fs::path path = folder_.path() / fs::path(from).parent_path() / where;
      std::error_code unknown;
      if (!fs::exists(path, unknown)) return wrong("does not exist");
      where = "file://" + url_path_encode(fs::absolute(path).lexically_normal().string());
    } else if (!where.empty()) {
      const std::string_view kind = std::string_view(where).substr(0, scheme);
      if (kind != "https" && kind != "http" && kind != "file") {
        return wrong("is no URL that starts with `https://`, `http://` or `file://`");
      }
      const std::size_t end = std::min(where.find('/', scheme + 3), where.size());
      if (where.substr(0, end).find('@') != std::string::npos) {
        mistakes.add(line.line, line.column,
                     "a file that people share must not hold a login; keep it in `~/.netrc`");
        return;
      }
    }
    indexes_.push_back(where.empty() ? line.option : line.option + ' ' + where);
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
    if (++files_ > kMostFiles) return wrong("is one file too many");
    return Included{*path, std::move(file), constraints || line.what == What::constraints};
  }

  const RequirementFolder& folder_;
  RequirementLists& lists_;
  std::vector<std::string>& indexes_;
  std::vector<std::string> open_;  ///< from the recipe's own down to the one being read
  std::size_t files_ = 0;
};

}  // namespace

void read_requirement_lines(const RequirementFolder& folder, const RequirementSource& source,
                            RequirementLists& lists, std::vector<std::string>& indexes) {
  LinesReader(folder, lists, indexes).read(source.file.text, folder.open(source.file), false);
}

}  // namespace mlenv
