#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "images/oci.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Where the Python packages of CUDA 13 and later put all of the toolkit.
std::string cuda_home(std::string_view release);
/// The same where these wheels hold nvcc, else empty.
std::string cuda_home_of(const std::vector<LockedWheel>& wheels);

/// What a container of the locked image runs, where and with which environment: PATH to the
/// environment's programs first, the NVIDIA container toolkit's variables where the wheels carry
/// CUDA, the recipe's own variables over all; labels that name the lock and, where there are some,
/// the digest of the project's files.
///
/// `base` are the settings of the image that is the base (null: none). Its variables, user, labels
/// (other than those about that image itself), and where the recipe is silent its workdir,
/// entrypoint and command stay; a command of the recipe takes the place of both.
ImageConfig image_config(const Lock& lock, const std::optional<Digest>& files,
                         const ImageConfig* base = nullptr);

}  // namespace mlenv
