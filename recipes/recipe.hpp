#pragma once
// What a person asked for: recipe.yaml, parsed and checked. Keys and their meaning: docs/recipe.md.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "recipes/requirement_lists.hpp"
#include "recipes/steering.hpp"

namespace mlenv {

/// A value and where it stands in the file (1-based), for messages found later than parsing.
struct Placed {
  std::string text;
  int line = 0;
  int column = 0;
  friend bool operator==(const Placed& a, const Placed& b) { return a.text == b.text; }
};

/// `sources:`: package sources other than those this machine is set up with.
struct RecipeSources {
  struct Debian {
    std::string uri;
    std::string suite;                    ///< empty: the base's suite
    std::vector<std::string> components;  ///< empty: the distribution's usual ones
    std::string signed_by;  ///< keyring: absolute, or in the recipe's folder; empty: the
                            ///< distribution's own
    bool check_valid_until = true;
  };
  /// A build of CPython for the base to take instead of its own: a tar of `python/bin/python3.12`
  /// and its kin, compressed or not.
  struct Python {
    Placed url;
    std::string sha256;  ///< hex
  };
  std::vector<Debian> debian;
  std::optional<Python> python;
  std::vector<std::string> pypi;       ///< index URLs, the first is the default index
  std::vector<std::string> snapshots;  ///< archives of old packages, as config.yaml has them
};

/// One line of `files:`: what of the recipe's folder is copied into the image, and where to.
struct RecipeFile {
  Placed source;       ///< relative to the recipe's folder, clean; `.` is that folder
  std::string target;  ///< absolute and clean
  bool into = false;   ///< written with a `/` at its end: a file goes into that folder
  friend bool operator==(const RecipeFile&, const RecipeFile&) = default;
};

/// One line of `libraries:`: which versions of what the framework brings along are allowed.
struct RecipeLibrary {
  std::string name;  ///< as in compat/cuda_libraries.hpp: `cudnn`
  Placed version;    ///< as written: `9.*`, `>=2.28`, `9.5`
  /// PEP 440: `==9.*`, `>=2.28`, `==9.5.*`.
  std::string specifier() const;
  friend bool operator==(const RecipeLibrary&, const RecipeLibrary&) = default;
};

/// One item of `requirements:`.
struct RequirementSource {
  Placed file;                 ///< relative to the recipe's folder, clean
  std::vector<Placed> extras;  ///< of a pyproject.toml or uv.lock, which are taken too
  std::vector<Placed> groups;
  friend bool operator==(const RequirementSource&, const RequirementSource&) = default;
};

/// One step of `run:`: a command that is executed while the image is built.
struct RunStep {
  Placed command;  ///< for `/bin/sh -euc`
  bool network = false;
  std::vector<std::string> secrets;  ///< names of what it may read; sorted, unique
  friend bool operator==(const RunStep&, const RunStep&) = default;
};
/// Whether a build's secret may be called that: it becomes a file's name.
bool is_secret_id(std::string_view text);

/// One data set of `data:`: verified here, mounted in runs, never in the image.
struct RecipeData {
  Placed name;
  std::string from;    ///< clean; a relative path is one from the recipe's folder
  std::string to;      ///< in the container; `/data/NAME` when not given
  std::string digest;  ///< `sha256:…` (data_digest.hpp); empty: not given
  std::string stage;   ///< `node`; empty: used where it lies
};

struct Recipe {
  fs::path path;       ///< the file, for messages
  std::string source;  ///< its text, for carets
  std::string name;
  Placed base;                 ///< `debian:bookworm`, `oci:DIR`, `HOST/REPOSITORY:TAG`
  bool base_is_image = false;  ///< then the next two are empty: its files tell them
  std::string distribution;    ///< `debian`
  std::string suite;           ///< `bookworm`
  std::optional<Placed> python;
  std::optional<Placed> framework;
  std::optional<Placed> cuda;
  std::optional<Placed> driver;          ///< as written: `>=580`
  std::vector<Placed> gpus;              ///< `sm_80`
  std::vector<RecipeLibrary> libraries;  ///< as written
  std::optional<Placed> compiler;        ///< where `libraries` asks for nvcc
  std::vector<Placed> packages;
  std::vector<RequirementSource> requirements;
  RequirementLists listed;                ///< what those files say; read by `read_recipe` alone
  Steering steering;                      ///< of its own keys and, by `read_recipe`, of those files
  std::vector<Placed> constraints;        ///< as written: PEP 508, or files of constraints
  std::vector<Placed> build_constraints;  ///< the same of builds
  std::vector<Placed> index_folders;      ///< those of `steering.indexes` that are paths
  std::vector<Placed> system;
  std::map<std::string, std::string> env;
  std::string workdir;  ///< absolute; `/workspace` when not given, empty with an image as base
  std::vector<std::string> command;  ///< empty: none
  bool bytecode = true;
  RecipeSources sources;
  std::vector<RecipeFile> files;  ///< as written
  std::vector<RunStep> run;       ///< as written
  std::vector<RecipeData> data;   ///< as written
  std::vector<Placed> platforms;  ///< as written; empty: none named

  /// What it is to be locked for, sorted, never empty; kUsualPlatform where it names none.
  std::vector<std::string> wanted_platforms() const;
  /// The folder that the recipe lies in; `.` where its path names none.
  fs::path folder() const { return path.has_parent_path() ? path.parent_path() : "."; }
  /// The oldest driver that must be able to run it: `580`; empty: any.
  std::string oldest_driver() const;
  /// Whether anything is asked of the CUDA wheels beyond their release.
  bool demands_of_cuda() const { return driver || !gpus.empty() || !libraries.empty() || compiler; }
  /// Where a keyring that `sources` names lies.
  fs::path keyring_path(const RecipeSources::Debian& archive) const {
    return archive.signed_by.starts_with('/') ? fs::path(archive.signed_by)
                                              : folder() / archive.signed_by;
  }
  /// Whether `sources` holds the base's own suite; else they come on top of this machine's.
  bool has_own_base_source() const;
  /// Whether anything needs a Python interpreter in the image.
  bool wants_python() const {
    return python || framework || !packages.empty() || !listed.requirements.empty();
  }
};

/// Throws one `recipe-invalid` (usage) that lists every mistake as `file:line:col: …` with the line
/// and a caret: unknown keys (nearest match), duplicate keys, wrong types, bad values, keys of the
/// contract that this version does not support yet. Opens no other file.
Recipe parse_recipe(std::string_view text, const fs::path& shown_path);
/// Also reads the files that `requirements`, `constraints` and `build` name: throws as
/// `read_requirement_files` does.
Recipe read_recipe(const fs::path& path);
/// Makes what such files say part of the recipe.
void take_listed(Recipe& recipe, RequirementLists listed);

/// Whether `path`, clean and relative to the recipe's folder, is of a data set or in it.
bool is_data(const Recipe& recipe, std::string_view path);

/// Why `files` puts nothing at `path` (absolute, clean), and where that begins: `/proc`, `/tmp`,
/// `/opt/venv`, …; empty where it may.
std::string reserved_place(std::string_view path);

/// An error about one place of a recipe, with line and caret; `recipe-invalid` unless told.
class Error;
Error recipe_error(const Recipe& recipe, const Placed& place, std::string_view message);

}  // namespace mlenv
