#include "runner/check/import_remedy.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct RemedyName {
  std::string_view what;
  std::string_view package;
};

constexpr std::array<RemedyName, 13> kOddLibraries = {{{"libglib-2.0.so.0", "libglib2.0-0"},
                                                       {"libgthread-2.0.so.0", "libglib2.0-0"},
                                                       {"libgobject-2.0.so.0", "libglib2.0-0"},
                                                       {"libgio-2.0.so.0", "libglib2.0-0"},
                                                       {"libgmodule-2.0.so.0", "libglib2.0-0"},
                                                       {"libz.so.1", "zlib1g"},
                                                       {"libjpeg.so.62", "libjpeg62-turbo"},
                                                       {"libOpenCL.so.1", "ocl-icd-libopencl1"},
                                                       {"libmpi.so.40", "libopenmpi3"},
                                                       {"libmpi.so.12", "libmpich12"},
                                                       {"libtk8.6.so", "libtk8.6"},
                                                       {"libtcl8.6.so", "libtcl8.6"},
                                                       {"libmagic.so.1", "libmagic1"}}};

/// What packages say when they do not find a library by its bare name.
constexpr std::array<RemedyName, 9> kKnownComplaints = {
    {{"PortAudio library not found", "libportaudio2"},
     {"sndfile library not found", "libsndfile1"},
     {"failed to find libmagic", "libmagic1"},
     {"Unable to find zbar shared library", "libzbar0"},
     {"cannot load library 'libgobject-2.0", "libglib2.0-0"},
     {"cannot load library 'libpango", "libpangoft2-1.0-0"},
     {"libespeak", "espeak-ng"},
     {"Could not find lib geos_c", "libgeos-c1v5"},
     {"No module named 'tkinter'", "python3-tk"}}};

constexpr std::array<RemedyName, 30> kOddModules = {
    {{"OpenSSL", "pyopenssl"},
     {"PIL", "pillow"},
     {"attr", "attrs"},
     {"bs4", "beautifulsoup4"},
     {"cv2", "opencv-python-headless"},
     {"dateutil", "python-dateutil"},
     {"dotenv", "python-dotenv"},
     {"faiss", "faiss-cpu"},
     {"fitz", "pymupdf"},
     {"git", "gitpython"},
     {"google.protobuf", "protobuf"},
     {"hydra", "hydra-core"},
     {"igraph", "python-igraph"},
     {"jwt", "pyjwt"},
     {"lightning_fabric", "lightning-fabric"},
     {"magic", "python-magic"},
     {"mpl_toolkits", "matplotlib"},
     {"OpenGL", "pyopengl"},
     {"pkg_resources", "setuptools<81"},
     {"pytorch_lightning", "pytorch-lightning"},
     {"sentence_transformers", "sentence-transformers"},
     {"serial", "pyserial"},
     {"skimage", "scikit-image"},
     {"sklearn", "scikit-learn"},
     {"slugify", "python-slugify"},
     {"speech_recognition", "speechrecognition"},
     {"umap", "umap-learn"},
     {"usb", "pyusb"},
     {"yaml", "pyyaml"},
     {"zmq", "pyzmq"}}};

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

std::string python_package_of(std::string_view module) {
  const std::string_view known = remedy_named(kOddModules, module);
  if (!known.empty()) return std::string(known);
  const std::string_view top = module.substr(0, module.find('.'));
  const std::string_view of_top = remedy_named(kOddModules, top);
  return of_top.empty() ? normalise_wheel_name(std::string(top)) : std::string(of_top);
}

ImportRemedy remedy_of(const FailedImport& failed) {
  for (const RemedyName& one : kKnownComplaints) {
    if (says(failed.error, one.what)) return {std::string(one.package), {}};
  }
  if (!failed.library.empty()) {
    const std::string_view file =
        std::string_view(failed.library).substr(failed.library.rfind('/') + 1);
    return {debian_package_of(file), {}};
  }
  if (!failed.module.empty()) return {{}, python_package_of(failed.module)};
  return {};
}

std::string recipe_line(const ImportRemedy& remedy) {
  if (!remedy.system.empty()) return fmt::format("add `system: [{}]`", remedy.system);
  if (!remedy.python.empty()) return fmt::format("add `packages: [\"{}\"]`", remedy.python);
  return {};
}

}  // namespace mlenv
