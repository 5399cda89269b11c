#pragma once
// A draft that grows out of other files: each thing found there goes into the draft where a recipe
// can say it, and among what was left out where it cannot.
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "recipes/init/draft.hpp"
#include "recipes/requirement.hpp"

namespace mlenv {

class Conversion {
 public:
  /// `folder` is the one that the recipe will lie in.
  /// `named` is the file that the person named.
  Conversion(fs::path folder, const fs::path& named)
      : folder_(std::move(folder)), folder_of_named_(named.parent_path()) {}

  Draft draft;

  const fs::path& folder() const { return folder_; }
  void leave_out(const SourcePlace& place, std::string_view text, std::string_view why);
  /// All of one reason are told in one line, with the place of the first.
  void leave_out_with_others(const SourcePlace& place, std::string_view text, std::string_view why);
  /// The source names that path by another one, by which it is told.
  void set_written_as(const std::string& path, const std::string& written) {
    written_as_[path] = written;
  }
  /// What is left out of that project's file for this reason is told only where, at the end, no
  /// package of the draft is the project in the file's folder.
  void only_without_project(const SourcePlace& place, std::string_view why) {
    of_projects_.emplace(place.file, why);
  }
  /// It is carried over, in a way that a person is to look at.
  void note(const SourcePlace& place, std::string_view text, std::string_view why);
  /// Whether its lines are among those that the draft is made of.
  bool has_read(const fs::path& requirements) const;
  /// Whether a file lies in the recipe's folder, or in that of the file that the person named.
  bool holds(const fs::path& real) const;
  /// Throws `source-invalid` where the file that is converted is a link to what lies elsewhere.
  void check_source(const fs::path& path) const;
  /// Throws `too-large` where the source has more of one kind: each is looked for among the others,
  /// and variables in each line.
  static constexpr std::size_t kMostEntries = 10'000;
  static constexpr std::size_t kMostVariables = 1'000;
  void check_count(std::size_t count, std::string_view what, std::size_t most = kMostEntries) const;

  /// A requirement (PEP 508) of Python. PyTorch, TensorFlow and JAX become the framework, and what
  /// their extras and local versions say of CUDA becomes `cuda`.
  void python_package(const SourcePlace& place, std::string_view text);
  /// `name`, `name=version` or `name/suite` of Debian.
  void system_package(const SourcePlace& place, std::string_view text);
  /// A later value takes the place of an earlier one.
  void env(const SourcePlace& place, std::string_view name, std::string_view value);
  /// `3.11` or `3.11.4`.
  void python_version(const SourcePlace& place, std::string_view text);
  /// `>=3.10,<4`: bookworm's Python where it is allowed, else another release's, Ubuntu's too.
  /// `||` stands between alternatives.
  void python_range(const SourcePlace& place, std::string_view specifier);
  /// `12`, `12.4`, `12.4.1`, or `cpu`.
  void cuda_release(const SourcePlace& place, std::string_view text);
  /// The source has nvcc, CUDA's compiler, by that image or package.
  void cuda_compiler(const SourcePlace& place, std::string_view text) {
    if (compiler_.text.empty()) compiler_ = {place, std::string(text)};
  }
  /// A step of `run`, and the folder in which its source starts it (empty: that of all steps).
  struct Step {
    std::string folder;
    DraftStep step;
  };
  void add_step(Step step) { steps_.push_back(std::move(step)); }
  /// One line of a requirements file, or an item of conda's list of `pip`; paths in it are those of
  /// the folder that `file` is in.
  void requirement_line(const SourcePlace& place, const std::string& text, const fs::path& file);
  /// The source's Python has its headers, as conda's and that of Docker's images of Python do: with
  /// a compiler beside it builds of packages find them.
  void python_has_headers() { has_headers_ = true; }
  /// As in a build, whose later command puts another version in the place of an earlier one's.
  void set_later_wins() { later_wins_ = true; }
  /// As in an environment of conda's, where pip puts its exact versions in the place of those.
  void set_later_pins_win() { later_pins_win_ = true; }
  /// Lines of a requirements file, and of those that it names. What lies neither in the recipe's
  /// folder nor in that of the file that the person named is left out.
  void requirements(const fs::path& path, const std::string& shown, const std::string& bytes);
  /// The same of a list that a build made of that file (empty: of none).
  void made_requirements(const fs::path& path, const std::string& shown, const std::string& text);
  /// The default index of Python, and others beside it; one of builds for a CUDA release says
  /// `cuda`, too, and in place of the default one it is that of PyTorch's packages alone.
  void python_index(const SourcePlace& place, std::string_view url, bool is_default);
  /// Where one package (its name normalised) comes from and nothing else; of builds for a CUDA
  /// release it says `cuda`, as `python_index` does.
  void package_index(const SourcePlace& place, const std::string& package, std::string_view url,
                     bool is_page);
  /// `--find-links` of a file: a page for those of its packages that come from there.
  void page_of_files(const SourcePlace& place, std::string_view url);
  /// The same of a folder with files of releases: for the packages that it has some of. One that
  /// `index` cannot name, since it lies outside of the recipe's folder, is told. `written`: from
  /// the folder of `file`.
  void folder_of_files(const SourcePlace& place, const fs::path& file, const std::string& written);
  /// `pip install` of packages and files, and where that command looks for them.
  struct CommandIndexes {
    std::string index{};                  ///< in the place of the default one; empty: that one
    std::vector<std::string> links{};     ///< pages of files
    std::vector<std::string> packages{};  ///< normalised
    bool files = false;                   ///< requirements of files are among them
  };
  void command_indexes(const SourcePlace& place, CommandIndexes command);

  /// To be called once at the end: what only all lines together tell.
  void finish();

  /// Whether the draft asks for the package of that normalised name, as its framework too.
  bool has_package(std::string_view name) const;

  /// A package of a framework, and what a recipe calls that.
  struct Framework {
    std::string_view package;
    std::string_view name;
    std::string_view cuda;  ///< that this package means, empty: none in particular
  };

 private:
  std::string as_written(std::string_view text) const;
  bool usable_index(const SourcePlace& place, std::string_view url);
  bool says_builds(const SourcePlace& place, std::string_view url);
  void default_index(const SourcePlace& place, std::string_view url);
  void index_of(const std::string& package, std::string_view url, bool find_links);
  void finish_indexes();
  void finish_pages();
  void finish_file_folders();
  void finish_extra_indexes();
  void finish_cuda();
  void finish_python();
  void choose_python();
  void choose_nearest_python();
  void fit_python_to_framework();
  void python_of_projects();
  void note_old_framework();
  std::string framework_python(std::span<const std::string_view> pythons) const;
  bool wins(const Requirement& later) const;
  bool replaces_framework(const Requirement& requirement) const;
  bool framework_package(const SourcePlace& place, Requirement requirement);
  bool same_framework_again(const SourcePlace& place, const Framework& framework,
                            Requirement requirement, const std::string& cuda);
  void python_of_wheel(const SourcePlace& place, const Requirement& requirement);
  void local_version(const SourcePlace& place, Requirement& requirement);
  bool elsewhere(const SourcePlace& place, const Requirement& requirement);
  std::optional<Requirement> requirement_of(const SourcePlace& place, std::string_view text);
  void package_item(const Requirement& requirement);
  std::optional<std::string> name_for_requirements(const fs::path& real,
                                                   const std::string& text) const;
  void bring_programs();
  void finish_steps();
  void finish_headers();
  void finish_compiler();
  bool builds_cuda_code() const;
  void finish_local_builds();
  void finish_projects();

  struct Index {
    SourcePlace place;
    std::string url;
  };
  fs::path folder_;
  fs::path folder_of_named_;
  struct PlacedCommand {
    SourcePlace place;
    CommandIndexes command;
  };
  std::vector<Index> extra_indexes_;
  std::vector<Index> pages_;  ///< of files
  /// A folder of files, and what it has releases of.
  struct FileFolder {
    SourcePlace place;
    std::string written;
    std::string name;  ///< from the recipe's folder
    std::set<std::string> packages;
  };
  std::vector<FileFolder> file_folders_;
  std::vector<Index> torch_indexes_;  ///< of builds, in place of a file's default one
  std::vector<PlacedCommand> commands_;
  std::optional<SourcePlace> beside_for_cpu_;  ///< an index of such builds
  Index cuda_;                                 ///< where `cuda` comes from, and as written
  std::vector<Step> steps_;
  struct Named {
    SourcePlace place;
    std::string text;
  };
  Named compiler_;  ///< what brought nvcc
  std::set<fs::path> read_;
  /// A Python that no release of a distribution has.
  struct NoSuchPython {
    SourcePlace place;
    std::string text;     ///< as written
    std::string release;  ///< `3.7`
  };
  std::optional<NoSuchPython> no_such_python_;
  std::string python_range_;        ///< that `draft.python` was chosen of
  std::vector<fs::path> projects_;  ///< folders that a named file of requirements installs
  std::map<std::string, SourcePlace> of_wheels_;  ///< Pythons that wheels by address are for
  bool later_wins_ = false;
  bool later_pins_win_ = false;
  bool has_headers_ = false;
  std::vector<LeftOut> together_;  ///< texts of the same `why` are joined
  /// Files of projects, and why what they say counts only with the project itself.
  std::set<std::pair<std::string, std::string>> of_projects_;
  std::set<std::string> told_;                     ///< what is left out, each once
  std::map<std::string, std::string> written_as_;  ///< by paths
  struct LocalBuild {
    SourcePlace place;
    std::string text;
    std::string package;  ///< normalised
    std::string_view why;
  };
  std::vector<LocalBuild> local_builds_;  ///< `torch==2.1+cpu`, until it is known where they are
};

/// Whether it is the address of PyPI itself, which the machine's default index is or mirrors.
bool is_pypi(std::string_view url);
/// `12.1` of `cu121`, `12.6` of `cu126`; empty for others.
std::string release_of_tag(std::string_view tag);
/// A file name made to an image's: lower case, with dashes; `environment` where nothing is left.
std::string image_name_from(std::string_view text);

}  // namespace mlenv
