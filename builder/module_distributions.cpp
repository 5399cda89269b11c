#include "builder/module_distributions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mlenv {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr auto kDistributions = std::to_array<NamePair>({
    {"Crypto", "pycryptodome"},
    {"Cython", "Cython"},
    {"OpenSSL", "pyOpenSSL"},
    {"PIL", "pillow"},
    {"attr", "attrs"},
    {"babel", "babel"},
    {"bs4", "beautifulsoup4"},
    {"certifi", "certifi"},
    {"cffi", "cffi"},
    {"click", "click"},
    {"cmake", "cmake"},
    {"cppy", "cppy"},
    {"cupy", "cupy"},
    {"cv2", "opencv-python-headless"},
    {"dateutil", "python-dateutil"},
    {"einops", "einops"},
    {"expecttest", "expecttest"},
    {"flit_core", "flit-core"},
    {"fsspec", "fsspec"},
    {"git", "GitPython"},
    {"grpc_tools", "grpcio-tools"},
    {"h5py", "h5py"},
    {"hatch_vcs", "hatch-vcs"},
    {"hatchling", "hatchling"},
    {"jax", "jax"},
    {"jaxlib", "jaxlib"},
    {"jinja2", "jinja2"},
    {"markdown", "markdown"},
    {"matplotlib", "matplotlib"},
    {"maturin", "maturin"},
    {"mesonpy", "meson-python"},
    {"mpi4py", "mpi4py"},
    {"nanobind", "nanobind"},
    {"networkx", "networkx"},
    {"ninja", "ninja"},
    {"nose", "nose"},
    {"numba", "numba"},
    {"numpy", "numpy"},
    {"oldest_supported_numpy", "oldest-supported-numpy"},
    {"packaging", "packaging"},
    {"pandas", "pandas"},
    {"pbr", "pbr"},
    {"pdm", "pdm-backend"},
    {"pip", "pip"},
    {"pkgconfig", "pkgconfig"},
    {"poetry", "poetry-core"},
    {"psutil", "psutil"},
    {"pybind11", "pybind11"},
    {"pythran", "pythran"},
    {"pytest_runner", "pytest-runner"},
    {"ptr", "pytest-runner"},
    {"requests", "requests"},
    {"scikit_build_core", "scikit-build-core"},
    {"scipy", "scipy"},
    {"semantic_version", "semantic-version"},
    {"setuptools", "setuptools"},
    {"setuptools_rust", "setuptools-rust"},
    {"setuptools_scm", "setuptools-scm"},
    {"sip", "sip"},
    {"sipbuild", "sip"},
    {"six", "six"},
    {"skbuild", "scikit-build"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"sympy", "sympy"},
    {"tensorflow", "tensorflow"},
    {"toml", "toml"},
    {"tomli", "tomli"},
    {"torch", "torch"},
    {"torchvision", "torchvision"},
    {"tqdm", "tqdm"},
    {"typing_extensions", "typing-extensions"},
    {"urllib3", "urllib3"},
    {"versioneer", "versioneer"},
    {"wheel", "wheel"},
    {"yaml", "PyYAML"},
});

/// Removed from the standard library (What's New in Python 3.10 to 3.13).
constexpr auto kDropped = std::to_array<NamePair>({
    {"formatter", "3.10"},
    {"parser", "3.10"},
    {"symbol", "3.10"},
    {"binhex", "3.11"},
    {"asynchat", "3.12"},
    {"asyncore", "3.12"},
    {"distutils", "3.12"},
    {"imp", "3.12"},
    {"smtpd", "3.12"},
    {"audioop", "3.13"},
    {"cgi", "3.13"},
    {"crypt", "3.13"},
    {"imghdr", "3.13"},
    {"lib2to3", "3.13"},
    {"pipes", "3.13"},
    {"telnetlib", "3.13"},
    {"uu", "3.13"},
    {"xdrlib", "3.13"},
});

template <std::size_t Size>
std::string_view found_in(const std::array<NamePair, Size>& table, std::string_view module) {
  module = module.substr(0, module.find('.'));
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const NamePair& one) { return one.first == module; });
  return found == table.end() ? std::string_view{} : found->second;
}

}  // namespace

std::string_view distribution_of_module(std::string_view module) {
  return found_in(kDistributions, module);
}

std::string_view dropped_from_python(std::string_view module) { return found_in(kDropped, module); }

}  // namespace mlenv
