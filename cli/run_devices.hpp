#pragma once
// GPUs and other devices of a run: from the words of `--gpus` and `--device` to what the container
// gets.
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "images/oci.hpp"
#include "runner/cdi/gpus.hpp"

namespace mlenv::cli {

struct DeviceWords {
  std::string gpus;                  ///< of `--gpus`; empty: all where the image uses CUDA
  std::vector<std::string> devices;  ///< of `--device`: CDI's names
};

/// The words understood; nothing of the host is looked at. Throws `usage`.
struct DeviceChoice {
  GpuChoice gpus;
  std::vector<CdiName> devices;
};
DeviceChoice parse_devices(const DeviceWords& words);

/// Whether an image's configuration says that it uses CUDA, or that it gets no GPUs
/// (`NVIDIA_VISIBLE_DEVICES=none`). nullopt: it says nothing of either.
std::optional<bool> wants_gpus(const ImageConfig& image);

/// Whether a run gets GPUs: as the choice says; without one where a driver runs here and the image
/// uses CUDA, by its configuration, else by its files.
bool takes_gpus(Ui& ui, const Image& image, const GpuChoice& choice);

/// GPUs that may be divided among several runs: those named, else each that is there; none where
/// they can be had together alone. Throws as `devices_for`.
std::vector<CdiName> gpus_to_divide(const GpuChoice& choice);

struct ChosenDevices {
  CdiEdits edits;
  std::vector<CdiName> names;
};
/// What the container gets, of GPUs only `with_gpus`. Specifications of NVIDIA's GPUs come from
/// /etc/cdi and /var/run/cdi, else from `nvidia-ctk`, else from the driver's own files. Throws what
/// `CdiRegistry::edits` does.
ChosenDevices devices_for(const DeviceChoice& choice, bool with_gpus);

}  // namespace mlenv::cli
