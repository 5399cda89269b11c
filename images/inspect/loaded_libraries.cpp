#include "images/inspect/loaded_libraries.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/paths.hpp"
#include "base/text.hpp"
#include "images/inspect/python_loads.hpp"
#include "images/inspect/software.hpp"

namespace mlenv {
namespace {

/// A library by the name that `find_library` takes.
struct LoadedName {
  std::string_view stem;    ///< without `lib` and what of a version follows
  std::string_view soname;  ///< in Debian 12
  std::string_view bound;   ///< what is nothing without it, and is not called so: a top-level name
};

constexpr auto kLoadedNames = std::to_array<LoadedName>({
    {"EGL", "libEGL.so.1", ""},
    {"GL", "libGL.so.1", ""},
    {"GLU", "libGLU.so.1", ""},
    {"MagickWand", "libMagickWand-6.Q16.so.6", "wand"},
    {"OSMesa", "libOSMesa.so.8", ""},
    {"OpenCL", "libOpenCL.so.1", ""},
    {"SDL2", "libSDL2-2.0.so.0", "sdl2"},
    {"archive", "libarchive.so.13", "libarchive"},
    {"cairo", "libcairo.so.2", "cairocffi"},
    {"dmtx", "libdmtx.so.0", "pylibdmtx"},
    {"enchant", "libenchant-2.so.2", "enchant"},
    {"espeak", "libespeak.so.1", ""},
    {"espeak-ng", "libespeak-ng.so.1", ""},
    {"fluidsynth", "libfluidsynth.so.3", "fluidsynth"},
    {"fontconfig", "libfontconfig.so.1", ""},
    {"geos_c", "libgeos_c.so.1", "shapely"},
    {"glut", "libglut.so.3", ""},
    {"gobject", "libgobject-2.0.so.0", ""},
    {"gomp", "libgomp.so.1", ""},
    {"harfbuzz", "libharfbuzz.so.0", ""},
    {"magic", "libmagic.so.1", "magic"},
    {"opus", "libopus.so.0", "opuslib"},
    {"pango", "libpango-1.0.so.0", ""},
    {"pangocairo", "libpangocairo-1.0.so.0", ""},
    {"pangoft", "libpangoft2-1.0.so.0", ""},
    {"portaudio", "libportaudio.so.2", "sounddevice"},
    {"pulse", "libpulse.so.0", "soundcard"},
    {"sndfile", "libsndfile.so.1", "soundfile"},
    {"spatialindex_c", "libspatialindex_c.so.6", "rtree"},
    {"turbojpeg", "libturbojpeg.so.0", "turbojpeg"},
    {"udev", "libudev.so.1", "pyudev"},
    {"usb", "libusb-1.0.so.0", ""},
    {"vlc", "libvlc.so.5", "vlc"},
    {"zbar", "libzbar.so.0", "pyzbar"},
});

/// `cairo` of `libcairo.so.2` and `cairo-2`, `gobject` of `libgobject-2.0-0`.
std::string_view stem_of(std::string_view name) {
  if (name.starts_with("lib")) name.remove_prefix(3);
  name = name.substr(0, name.find(".so"));
  constexpr std::string_view kVersion = "0123456789.-";
  const std::size_t last = name.find_last_not_of(kVersion);
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

const LoadedName* known_library(std::string_view name) {
  const std::string_view stem = stem_of(name);
  const auto found = std::find_if(kLoadedNames.begin(), kLoadedNames.end(),
                                  [&](const LoadedName& one) { return one.stem == stem; });
  return found == kLoadedNames.end() ? nullptr : &*found;
}

/// `libfoo.so.1`.
bool is_full_soname(std::string_view name) {
  const std::size_t at = name.find(".so.");
  return name.starts_with("lib") && at != std::string_view::npos && at + 4 < name.size() &&
         is_digit(name[at + 4]);
}

/// Names of all libraries in the image, wherever they lie.
class LibraryNames {
 public:
  explicit LibraryNames(const ImageTree& tree) {
    for (const auto& [path, node] : tree.nodes()) {
      const std::string_view name = last_part(path);
      if (name.find(".so") != std::string_view::npos) names_.insert(name);
    }
  }
  /// One of that stem: `libsndfile.so.1`, `libsndfile_x86_64.so`, `libgomp-a34b3233.so.1`.
  bool hold(std::string_view asked) const {
    if (names_.contains(asked)) return true;
    const std::string first = std::string("lib").append(stem_of(asked));
    for (auto at = names_.lower_bound(first); at != names_.end() && at->starts_with(first); ++at) {
      if (at->size() == first.size() || !is_letter((*at)[first.size()])) return true;
    }
    return false;
  }

 private:
  std::set<std::string_view> names_;
};

/// `sounddevice` of `…/site-packages/sounddevice.py`.
std::string_view package_of_module(std::string_view path) {
  constexpr std::string_view kSite = "-packages/";
  path.remove_prefix(path.rfind(kSite) + kSite.size());
  path = path.substr(0, path.find('/'));
  return path.substr(0, path.find('.'));
}

/// Whether a package is made of the library: `pyzbar`, `cairocffi`.
bool is_binding(std::string_view package, const LoadedName& library) {
  return package == library.bound ||
         (library.stem.size() > 3 &&
          to_lower(package).find(to_lower(library.stem)) != std::string::npos);
}

/// What a load means where none of its names is in the image.
struct LackedLoad {
  std::string soname;
  bool wanted = false;
};

/// nullopt: one of them is there, or it is a driver's, NVIDIA's or of no known package.
std::optional<LackedLoad> lacked(const LibraryNames& there, std::string_view path,
                                 const LibraryLoad& load) {
  const LoadedName* known = nullptr;
  std::string_view soname;
  for (const std::string& name : load.names) {
    if (there.hold(name)) return std::nullopt;
    if (known == nullptr) known = known_library(name);
    if (soname.empty() && is_full_soname(name)) soname = name;
  }
  if (known != nullptr) soname = known->soname;
  if (soname.empty() || is_from_driver(soname) || is_nvidia_library(soname)) return std::nullopt;
  const bool bound = known != nullptr && is_binding(package_of_module(path), *known);
  if (!load.at_import && known == nullptr) return std::nullopt;
  return LackedLoad{std::string(soname), load.at_import || bound};
}

}  // namespace

std::vector<MissingLibrary> missing_loaded_libraries(const ImageTree& tree) {
  const LibraryNames there{tree};
  std::map<std::string, MissingLibrary> missing;
  const auto take = [&](const std::string& path, const LibraryLoad& load) {
    const std::optional<LackedLoad> lack = lacked(there, path, load);
    if (!lack) return;
    const auto [at, is_new] = missing.try_emplace(lack->soname);
    MissingLibrary& one = at->second;
    if (is_new) one = {lack->soname, "/" + path, 0, false, {}, true};
    if (lack->wanted && one.optional) one.needed_by = "/" + path;
    one.optional = one.optional && !lack->wanted;
    ++one.files;
  };
  for (const auto& [path, node] : tree.nodes()) {
    if (node.text == nullptr || !may_load_libraries(path, 1)) continue;
    for (const LibraryLoad& load : read_loads(*node.text)) take(path, load);
  }
  std::vector<MissingLibrary> found;
  for (auto& [name, one] : missing) found.push_back(std::move(one));
  return found;
}

}  // namespace mlenv
