#pragma once
// Packages of conda as what a recipe has for them.
#include <string>
#include <string_view>

#include "recipes/init/conda_spec.hpp"
#include "recipes/init/conversion.hpp"

namespace mlenv {

class CondaPackages {
 public:
  explicit CondaPackages(Conversion& to) : to_(to) {}

  /// The file lists all that is installed, as exports do: what packages bring along is no wish.
  void set_lists_all(bool lists_all) { lists_all_ = lists_all; }
  /// One specification of conda's, `numpy>=1.24`.
  void package(const SourcePlace& place, const std::string& text);

 private:
  void python(const SourcePlace& place, const std::string& text, const CondaSpec& spec);
  bool is_of_cuda(const SourcePlace& place, const std::string& text, const CondaSpec& spec);
  void python_package(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
                      const std::string& name);
  void debian(const SourcePlace& place, const std::string& text, const CondaSpec& spec,
              const std::string& names);

  Conversion& to_;
  bool lists_all_ = false;
};

/// Whether such a package is in all environments and asked for by nobody: a file that names it is
/// an export.
bool is_of_conda_exports(std::string_view name);

/// Whether a `*.txt` is what `conda list --export` or `--explicit` writes.
bool is_conda_list(std::string_view text);
void convert_conda_list(const std::string& shown, std::string_view text, Conversion& to);

}  // namespace mlenv
