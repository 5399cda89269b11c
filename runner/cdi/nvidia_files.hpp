#pragma once
// What of NVIDIA's driver lies in the host's file system, and a container needs: its libraries, its
// programs, its daemons' sockets, and the files by which loaders of graphics and OpenCL find it.
#include "runner/cdi/spec.hpp"
#include "runner/facts/sources.hpp"

namespace mlenv {

/// A file that the host has, at its own path, read-only.
void add_mount(const FactSources& from, const std::string& path, CdiEdits& edits);

/// All of them. The libraries are those of the linker's cache that end in the driver's version, and
/// the platforms of EGL (libnvidia-egl-*), which have versions of their own; each by the names it
/// is loaded by, in one folder that `library_folders` then names. A driver in a folder of its own
/// (`/usr/local/nvidia/{lib64,bin,share}`) is shown the same way. As NVIDIA's container toolkit has
/// it (nvcdi), but for what needs a display: X.Org's modules, VDPAU. Throws `no-device` where the
/// libraries are not installed.
void add_driver_files(const FactSources& from, CdiEdits& edits);

}  // namespace mlenv
