#pragma once
// One function for each format: `text` is that of `path`, called `shown` in what is left out. They
// throw `source-invalid` (usage), with places, for text that is not of the format.
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/conversion.hpp"
#include "recipes/init/shell_values.hpp"

namespace mlenv {

struct ConversionSource {
  fs::path path;
  std::string shown;
  std::string text;
};

/// Its text, UTF-16 decoded. Throws `source-invalid` for a folder, pipe, link out of its folder,
/// text that is no UTF-8, and `absent`, `too-large`.
ConversionSource read_source(const fs::path& path, const Conversion& to);

/// A path that a project's file names, from that file's folder, as a recipe says it: from its own.
std::string path_from_recipe(const fs::path& file, std::string_view path, const Conversion& to);

/// Whether a package has builds for each CUDA release, on indexes of their own: where it comes from
/// says which is meant.
bool comes_in_builds(std::string_view package);

/// What is asked of a project beside what it needs always.
struct ProjectChoice {
  std::vector<std::string> extras{};
  std::vector<std::string> groups{};
};

void convert_conda(const ConversionSource& source, Conversion& to);
/// How a Dockerfile is built, where another file says so.
struct DockerBuild {
  fs::path context{};                         ///< empty: the Dockerfile's folder
  std::map<std::string, std::string> args{};  ///< in place of what ARG says
  std::string target{};                       ///< the stage that is wanted; empty: the last one
  std::vector<std::string> entrypoint{};      ///< in place of ENTRYPOINT and CMD
  std::vector<std::string> command{};         ///< in place of CMD
};
void convert_dockerfile(const ConversionSource& source, Conversion& to,
                        const DockerBuild& build = {});
void convert_cog(const ConversionSource& source, Conversion& to);
void convert_pyproject(const ConversionSource& source, Conversion& to,
                       const ProjectChoice& choice = {});
void convert_setup(const ConversionSource& source, Conversion& to);  ///< setup.py, setup.cfg
void convert_pixi(const ConversionSource& source, Conversion& to);
void convert_devcontainer(const ConversionSource& source, Conversion& to);
void convert_notebook(const ConversionSource& source, Conversion& to);

/// What a base image's name says: distribution, Python, framework, CUDA.
void convert_base_image(const SourcePlace& place, std::string_view image, Conversion& to);

/// What an image's name says of the Python packages in it.
enum class ImageContents {
  none,      ///< a distribution alone
  tools,     ///< Python, conda or CUDA, and nothing that was installed with them
  packages,  ///< those that it is known for
  unknown
};
ImageContents contents_of_image(std::string_view image);
/// Of an image that a build copies an environment out of: its Python, framework and packages, and
/// nothing that makes it a base.
void convert_copied_image(const SourcePlace& place, std::string_view image, Conversion& to);

/// `git clone`d in a build: where in the image, and whence.
struct Clone {
  std::string path;         ///< absolute
  std::string url;          ///< `https://h.example/x`
  std::string reference{};  ///< a branch, tag or commit; empty: the repository's own

  std::string address() const;  ///< `git+https://h.example/x@v1`
};
std::optional<Clone> clone_of(std::span<const std::string> words, const std::string& folder);
/// Whether only ssh reaches it, whose keys a build has and a recipe does not.
bool is_by_ssh(const Clone& clone);
/// Whether a path in the image is in that repository.
bool is_of_clone(const Clone& clone, const std::string& path);
/// Whether a folder here is that repository, by its name or by what its `.git/config` says.
bool is_clone_of_folder(const Clone& clone, const fs::path& folder);
/// `git checkout v1`, `git reset --hard 1a2b3c`, in `folder` or behind `-C`: of that repository
/// among `clones`.
void set_reference(std::vector<Clone>& clones, std::span<const std::string> words,
                   const std::string& folder);

/// A list that commands of the build made, or changed.
struct MadeText {
  fs::path source;  ///< the file here that it comes from; empty: none
  std::string text;
  std::string command;  ///< which made it
};
using FindMadeText = std::function<std::optional<MadeText>(std::string_view name)>;

/// One simple command of a build; `file` finds a requirements file by its name in the image.
struct InstallCommand {
  SourcePlace place;
  std::vector<std::string> words;
  std::string text;
  std::string folder{};             ///< in the image, where it is started
  std::span<const Clone> clones{};  ///< made before it
  bool foreign = false;             ///< another maker's archive was added before it
  bool builds_wheel = false;        ///< the build makes a wheel of the project
  FindPaths paths{};                ///< of files that were copied into the image
  FindMadeText made{};
  std::span<const std::string> copied{};  ///< folders in the image that another stage filled
};
using FindFile = std::function<std::optional<fs::path>(std::string_view name)>;
/// The same of what installs projects and environments: uv, Poetry, PDM, Pipenv, conda and its kin.
bool convert_project_command(const InstallCommand& command, std::span<const std::string> words,
                             const FindFile& file, Conversion& to);
/// False, and nothing is done, for one that is no package manager's and no tidying up after one.
bool convert_install(const InstallCommand& command, const FindFile& file, Conversion& to);

}  // namespace mlenv
