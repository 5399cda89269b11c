#include "runner/check/import_remedy.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/apt_words.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"
#include "runner/check/went_too_far.hpp"

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
    {"libnssutil3.so", "libnss3"},
    {"libplc4.so", "libnspr4"},
    {"libplds4.so", "libnspr4"},
    {"libsmime3.so", "libnss3"},
    {"libssl3.so", "libnss3"},
    {"libtcl8.6.so", "libtcl8.6"},
    {"libtk8.6.so", "libtk8.6"},
    {"libz.so.1", "zlib1g"},
});

/// What packages say when they do not find a library by its bare name.
constexpr auto kKnownComplaints = std::to_array<RemedyName>({
    {"Bad git executable", "git"},
    {"ffmpeg or ffprobe could not be found", "ffmpeg"},
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
  if (const std::string_view bound = bound_of_complaint(failed.error); !bound.empty()) {
    return {{}, {}, std::string(bound)};
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
