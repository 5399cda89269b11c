#pragma once
// What an image's CUDA asks of a driver, and how the host's driver stands to it (rules of NVIDIA's
// CUDA Compatibility guide, with the rows of recipes/compat/cuda_releases.hpp).
#include "recipes/resolve/versions.hpp"
#include "runner/check/case.hpp"

namespace mlenv {

/// A CUDA release that something in the image was built for.
struct CudaNeed {
  std::string release;  ///< `13.2`; `12` where only the major version is told
  std::string who;      ///< `torch 2.15.0`, a path
  std::string source;
  std::string shown() const;  ///< `CUDA 13.2 (torch 2.15.0)`
  bool is_exact() const { return release.find('.') != std::string::npos; }
};
/// That of the frameworks, the newest of several; else that of the newest CUDA runtime.
Fact<CudaNeed> cuda_need(const ImageFacts& image);

/// The host's driver: its kernel part, else its libraries. Unknown where none is loaded.
Text driver_of(const Facts& host);
/// The CUDA release that the driver's API is of: as it says, else by its number.
Text driver_cuda(const Facts& host);

enum class Standing {
  as_new,          ///< as the toolkit's own driver, or newer
  minor_version,   ///< older, and new enough for machine code
  at_least_minor,  ///< one of both: the release is not told exactly
  too_old
};
/// Unknown, with the reason, where driver or release are, or mlenv does not know the release.
Fact<Standing> driver_standing(const Facts& host, const CudaNeed& need);
/// The oldest driver that runs the release, and the one that runs all of it; empty: not known here.
std::string oldest_driver_for(const CudaNeed& need);
std::string own_driver_of(const CudaNeed& need);
/// ``driver 535.183.01``, ``a driver for CUDA 12.2``
std::string shown_driver(const Facts& host);
/// Where that comes from.
std::string driver_source(const Facts& host);

/// What a libcuda in the image, made for running on older drivers, comes to here.
enum class Compat {
  none,  ///< there is none, or none for the release
  works,
  refused_gpu,     ///< error 804
  refused_driver,  ///< error 803
};
struct CompatStanding {
  Fact<Compat> what;  ///< unknown, with the reason
  ForwardCompatibility library;
  std::string about;    ///< the GPU or driver that is refused
  bool forced = false;  ///< LD_LIBRARY_PATH puts it before the host's
};
CompatStanding compat_standing(const ImageFacts& image, const Facts& host, const CudaNeed& need);

/// How the deciding libraries hold code for a GPU, the worst of them.
struct CodeStanding {
  Coverage coverage = Coverage::complete;
  std::string library;  ///< the one with the worst
  std::vector<std::string> code;
};
/// Unknown where the GPU's architecture or the image's code is.
Fact<CodeStanding> code_standing(const ImageFacts& image, const Gpu& gpu);
/// GPUs that the image covers by PTX alone, as far as that is known.
std::vector<const Gpu*> gpus_by_ptx(const ImageFacts& image, const Facts& host);
/// Whether the driver may be unable to compile PTX of the release: rule `ptx-too-new`.
bool ptx_is_too_new(const Case& here);

}  // namespace mlenv
