#pragma once
// How conda asks for a package (conda's documentation, "Package match specifications").
#include <optional>
#include <string>
#include <string_view>

namespace mlenv {

/// `channel::name=version=build`, `name >=1,<2`, `name[version='>=1']`, the URL of a package's
/// file.
struct CondaSpec {
  std::string channel;
  std::string name;  ///< lower case
  std::string
      version;  ///< as conda writes it, blanks removed: `=1.2`, `>=1,<2`, `1.2.*`; empty: any
  std::string build;
  std::string extras{};  ///< of `napari[all]`, which conda does not know and people write

  /// Its version without what stands before the number: `1.2`.
  std::string number() const;
};

CondaSpec conda_spec(std::string_view text);

/// The same version in PEP 440's words, empty for any; nullopt where it has none. With a `build`
/// a version is that one, else `=1.2` is any 1.2.x.
std::optional<std::string> pep440_specifier(const CondaSpec& spec);

/// `12.1` of `py3.11_cuda12.1_cudnn8.9.2_0` and `cuda121py311h…`; empty: it tells none.
std::string cuda_of_build(std::string_view build);

}  // namespace mlenv
