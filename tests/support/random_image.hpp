#pragma once
// Images for tests: made of random layers, written by libarchive and zlib, not by our own encoders,
// so that they can judge ours. Half of the layers lie in the store as slices of a made-up wheel.
#include <string>
#include <vector>

#include "base/tar.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

struct TestEntry {
  TarEntry entry;
  std::string content;
};

TestEntry test_folder(std::string path, std::uint32_t mode = 0755);
TestEntry test_file(std::string path, std::string content, std::uint32_t mode = 0644);
TestEntry test_symlink(std::string path, std::string target);
TestEntry test_hardlink(std::string path, std::string target);

/// A POSIX tar. Entries are written as they are, also ones that no layer may hold.
std::string test_tar(const std::vector<TestEntry>& entries);
std::string test_gzip(std::string_view content);

/// Puts the compressed tar into the store, whole or as slices.
Layer put_layer(Store& store, const std::string& tar, const std::string& title,
                bool spliced = false);

/// The same for the same seed. In the store, without a name.
Image random_image(Store& store, unsigned seed, std::size_t layers);

}  // namespace mlenv
