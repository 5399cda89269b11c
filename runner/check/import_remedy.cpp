#include "runner/check/import_remedy.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/apt_words.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct RemedyName {
  std::string_view what;
  std::string_view package;
};

constexpr auto kOddLibraries = std::to_array<RemedyName>({
    {"libGLU.so.1", "libglu1-mesa"},
    {"libOSMesa.so.8", "libosmesa6"},
    {"libOpenCL.so.1", "ocl-icd-libopencl1"},
    {"libdmtx.so.0", "libdmtx0b"},
    {"libgeos_c.so.1", "libgeos-c1v5"},
    {"libgio-2.0.so.0", "libglib2.0-0"},
    {"libglib-2.0.so.0", "libglib2.0-0"},
    {"libglut.so.3", "libglut3.12"},
    {"libgmodule-2.0.so.0", "libglib2.0-0"},
    {"libgobject-2.0.so.0", "libglib2.0-0"},
    {"libgthread-2.0.so.0", "libglib2.0-0"},
    {"libharfbuzz.so.0", "libharfbuzz0b"},
    {"libjpeg.so.62", "libjpeg62-turbo"},
    {"libmagic.so.1", "libmagic1"},
    {"libmpi.so.12", "libmpich12"},
    {"libmpi.so.40", "libopenmpi3"},
    {"libtcl8.6.so", "libtcl8.6"},
    {"libtk8.6.so", "libtk8.6"},
    {"libz.so.1", "zlib1g"},
});

/// What packages say when they do not find a library by its bare name.
constexpr auto kKnownComplaints = std::to_array<RemedyName>({
    {"PortAudio library not found", "libportaudio2"},
    {"sndfile library not found", "libsndfile1"},
    {"failed to find libmagic", "libmagic1"},
    {"Unable to find zbar shared library", "libzbar0"},
    {"no library called \"cairo", "libcairo2"},
    {"cannot load library 'libgobject-2.0", "libglib2.0-0"},
    {"cannot load library 'libpango", "libpangoft2-1.0-0"},
    {"libespeak", "espeak-ng"},
    {"No Qt bindings could be found", "libgl1"},
    {"Could not find lib geos_c", "libgeos-c1v5"},
    {"ImageMagick library", "libmagickwand-6.q16-6"},
    {"Could not find Opus library", "libopus0"},
    {"The 'enchant' C library was not found", "libenchant-2-2"},
    {"Unable to find dmtx shared library", "libdmtx0b"},
    {"Couldn't find the FluidSynth library", "libfluidsynth3"},
    {"No module named 'tkinter'", "python3-tk"},
    {"No module named 'distutils", "python3-distutils"},
    {"No module named 'lib2to3", "python3-lib2to3"},
});

/// What older packages say of a newer one beside them, and the last release that goes with them
/// (the newer ones' release notes).
constexpr auto kWentTooFar = std::to_array<RemedyName>({
    {"numpy.core.multiarray failed to import", "numpy<2"},
    {"numpy.core.umath failed to import", "numpy<2"},
    {"_ARRAY_API not found", "numpy<2"},
    {"Unable to convert function return value to a Python type", "numpy<2"},
    {"was removed in the NumPy 2.0 release", "numpy<2"},
    {"Expected 96 from C header, got 88 from PyObject", "numpy<2"},
    {"No module named 'numpy.lib.function_base'", "numpy<2"},
    {"module 'numpy' has no attribute 'float'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'int'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'bool'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'object'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'typeDict'", "numpy<1.24"},
    {"Descriptors cannot be created directly", "protobuf<3.21"},
    {"Descriptors cannot not be created directly", "protobuf<3.21"},
    {"'google.protobuf.internal' (", "protobuf>=3.20"},
    {"cannot import name 'escape' from 'jinja2'", "jinja2<3.1"},
    {"cannot import name 'Markup' from 'jinja2'", "jinja2<3.1"},
    {"cannot import name 'soft_unicode' from 'markupsafe'", "markupsafe<2.1"},
    {"cannot import name 'url_quote' from 'werkzeug.urls'", "werkzeug<3"},
    {"cannot import name 'BaseResponse' from 'werkzeug.wrappers'", "werkzeug<2.1"},
    {"cannot import name 'json' from 'itsdangerous'", "itsdangerous<2.1"},
    {"cannot import name 'cached_download' from 'huggingface_hub'", "huggingface-hub<0.26"},
    {"No module named 'torchvision.transforms.functional_tensor'", "torchvision<0.17"},
    {"No module named 'sklearn.externals.six'", "scikit-learn<0.23"},
    {"cannot import name 'joblib' from 'sklearn.externals'", "scikit-learn<0.23"},
    {"cannot import name 'imread' from 'scipy.misc'", "scipy<1.2"},
    {"cannot import name 'imresize' from 'scipy.misc'", "scipy<1.3"},
    {"cannot import name 'imsave' from 'scipy.misc'", "scipy<1.2"},
    {"cannot import name 'gaussian' from 'scipy.signal'", "scipy<1.13"},
    {"cannot import name 'trapz' from 'scipy.integrate'", "scipy<1.14"},
    {"cannot import name 'simps' from 'scipy.integrate'", "scipy<1.14"},
    {"module 'matplotlib' has no attribute '__version_info__'", "matplotlib-inline<0.2"},
});

template <std::size_t N>
std::string_view remedy_named(const std::array<RemedyName, N>& all, std::string_view what) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const RemedyName& one) { return one.what == what; });
  return found == all.end() ? std::string_view{} : found->package;
}

}  // namespace

std::string debian_package_of(std::string_view soname) {
  const std::string_view known = remedy_named(kOddLibraries, soname);
  if (!known.empty()) return std::string(known);
  const std::size_t end = soname.find(".so");
  std::string name = to_lower(soname.substr(0, end));
  std::replace(name.begin(), name.end(), '_', '-');
  if (end == std::string_view::npos) return name;
  const std::string_view number = soname.substr(std::min(end + 4, soname.size()));
  if (!number.empty() && !name.empty() && is_digit(name.back())) name += '-';
  return name.append(number);
}

ImportRemedy remedy_of(const FailedImport& failed) {
  for (const RemedyName& one : kWentTooFar) {
    if (says(failed.error, one.what)) return {{}, {}, std::string(one.package)};
  }
  for (const RemedyName& one : kKnownComplaints) {
    if (says(failed.error, one.what)) return {std::string(one.package), {}};
  }
  if (!failed.library.empty()) {
    const std::string_view file =
        std::string_view(failed.library).substr(failed.library.rfind('/') + 1);
    std::string package = debian_package_of(file);
    // An error is a package's own words.
    return {is_debian_name(package) ? std::move(package) : std::string{}, {}};
  }
  // What a package tells people to install, where it is one.
  if (const auto told = packages_of_apt_words(failed.error); told.size() == 1) {
    return {told.front(), {}};
  }
  // A part of a package that is there is another version's; `imp` and its kin are an older
  // Python's.
  const std::string& module = failed.module;
  if (module.find('.') != std::string::npos || !dropped_from_python(module).empty()) return {};
  return {{}, std::string(distribution_of_module(module))};
}

std::vector<std::string> recipe_lines(const std::vector<FailedImport>& failed) {
  std::set<std::string> system;
  std::set<std::string> packages;
  std::set<std::string> constraints;
  for (const FailedImport& one : failed) {
    const ImportRemedy remedy = remedy_of(one);
    if (!remedy.constraint.empty()) constraints.insert('"' + remedy.constraint + '"');
    if (!remedy.system.empty()) system.insert(remedy.system);
    if (!remedy.python.empty()) packages.insert('"' + remedy.python + '"');
  }
  std::vector<std::string> lines;
  for (const auto& [key, names] : {std::pair{"system", &system}, std::pair{"packages", &packages},
                                   std::pair{"constraints", &constraints}}) {
    if (names->empty()) continue;
    lines.push_back(fmt::format("`{}: [{}]`", key, join({names->begin(), names->end()}, ", ")));
  }
  return lines;
}

}  // namespace mlenv
