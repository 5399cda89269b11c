#pragma once
// Packages of conda as what a recipe has for them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/conda_spec.hpp"
#include "recipes/init/conversion.hpp"

namespace mlenv {

class YamlSource;

class CondaPackages {
 public:
  explicit CondaPackages(Conversion& to) : to_(to) {}

  /// The file lists all that is installed, as exports do: what packages bring along is no wish.
  void set_lists_all(bool lists_all) { lists_all_ = lists_all; }
  /// One specification of conda's, `numpy>=1.24`. `on_pypi` is what the file itself says that it is
  /// called there (empty: it is no Python package), for names that the table does not have.
  void package(const SourcePlace& place, const std::string& whole,
               const std::optional<std::string>& on_pypi = std::nullopt);
  /// To be called once at the end: packages whose name on PyPI depends on the CUDA release.
  void finish();

 private:
  struct OfRelease {
    SourcePlace place;
    CondaSpec spec;
    std::string_view on_pypi;  ///< `cupy-cuda{}x`
  };
  void unknown_package(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
                       const std::optional<std::string>& on_pypi);
  bool is_of_release(const SourcePlace& place, const CondaSpec& spec);
  bool is_held_back(const CondaSpec& spec) const;
  void python(const SourcePlace& place, const std::string& text, const CondaSpec& spec);
  bool is_of_cuda(const SourcePlace& place, const std::string& text, const CondaSpec& spec);
  void python_package(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
                      const std::string& name);
  void debian(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
              const std::string& names);

  Conversion& to_;
  bool lists_all_ = false;
  std::vector<OfRelease> of_release_;
  std::optional<OfRelease> of_all_;  ///< the CUDA release of a whole environment
};

/// Whether a value names folders of an environment of conda's or Pixi's, which no image has:
/// `$CONDA_PREFIX/lib`.
bool names_conda_folder(std::string_view value);
/// A variable of such an environment; what names its folders is left out.
void conda_variable(const SourcePlace& place, const std::string& name, const std::string& value,
                    Conversion& to);

/// Whether such a package is in all environments and asked for by nobody: a file that names it is
/// an export.
bool is_of_conda_exports(std::string_view name);

/// A lock of conda-lock; false: it is none.
bool convert_conda_lock(YamlSource& yaml, Conversion& to);

/// Whether a `*.txt` is what `conda list --export` or `--explicit` writes.
bool is_conda_list(std::string_view text);
void convert_conda_list(const std::string& shown, std::string_view text, Conversion& to);

}  // namespace mlenv
